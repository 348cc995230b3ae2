// Browsers start no workers for pages opened from the file system. There, and only there, a frame stands in for one:
// the script of the worker runs inside it, and messages go to and fro. The search needs nothing more.
(function () {
  "use strict";
  if (location.protocol !== "file:") return;

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      const waiting = [];
      let hear = null;
      inside.addEventListener = (kind, listener) => { if (kind === "message") hear = listener; };
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...others) => others.reduce((before, each) => before.then(() => load(inside, each)), Promise.resolve());
      this.deliver = (data) => (hear ? hear(new MessageEvent("message", { data })) : waiting.push(data));
      load(inside, address).then(() => waiting.splice(0).forEach(this.deliver));
      this.terminate = () => frame.remove();
    }
    postMessage(data) { this.deliver(data); }
  };

  function load(inside, address) {
    return new Promise((done, failed) => {
      const script = inside.document.createElement("script");
      script.src = address;
      script.onload = done;
      script.onerror = failed;
      inside.document.documentElement.append(script);
    });
  }
})();
