"""What the page says whatever the figures are."""

WHAT = (
    "Nothing was trained. Everything is counted or tested on the log itself; what is drawn at random has a fixed seed, "
    "so the same log gives the same page. Of large logs a random part is looked at, and its size told: whole histories "
    "for tests and shuffles, test cases for the baselines. The figures are in the JSON file beside this page."
)
_FIRST_TAKES = (
    "Tests look at first takes only: a user's first event with each item. Items with fewer than ten events are not "
    "tested. Holm's correction keeps the chance of even one false claim among all items below 5%; the false discovery "
    "rate keeps false claims below one in twenty of those made."
)
_NULLS = (
    "Along histories each event has a place between 0 and 1; events of one moment share the mean of their places. "
    "Random order gives mean and variance of an item's places exactly. The static propensity is a race: items reach "
    "users at rates that never change and are the same for all, likely ones come first, nothing is taken twice; who "
    "likes an item most may take it early for that reason alone. Along the calendar all events of all users are one "
    "history."
)
_RANKED = (
    "The baselines rank by training counts (last period: the last tenth of the training events by time; without a "
    "clock the last tenth of each history). Ties go against the target. Seen items do not compete."
)
HOW = (_FIRST_TAKES, _NULLS, _RANKED)
TESTS = (
    "A static propensity gives each item one number for all times. If that were so, when an item is taken would be "
    "chance, apart from popular items being met first. Every item is put to the test, along users' histories (the "
    "steps that ITPS weighs by) and along the calendar."
)
NO_CLOCK = "The log has an order and no times: nothing can be said about the calendar."
TOO_FEW = "No item has the ten events that a test needs."
NO_ORDER = "No history has two events: there is no order to look at."
SHUFFLES = (
    "If the order of events meant nothing, shuffled histories would look like the real ones. Counted are recurring "
    "transitions: how often two users go from one item to the same next item. Each history is shuffled {shuffles} "
    "times; then only runs of ten neighbours are, which leaves slow drifts as they are. Events of one moment have no "
    "order and are put in random order in the log as well. The smallest p that {shuffles} shuffles can show is 0.01."
)
TRUST = (
    "A test set is no better than the rule that made it. Leave-one-out holds out each user's last two events, whenever "
    "they were; a split in time trains on the first 80% of the log and tests on the last 10%."
)
BASELINE = (
    "What ranking by popularity alone would score: a model must beat it to have learnt anything about users. The same "
    "scorer gets very different figures from different protocols, and figures of different protocols must never be "
    "compared."
)
COST = (
    "Inverse propensity weights make rare events speak for many. How many equally weighted events the log is then "
    "worth is the effective sample size, (Σ w)² / Σ w², here as a share of {events} training events (the last {window} "
    "of each history). Popularity of the training part stands in for exposure, over all steps (IPS) or at the event's "
    "own step (ITPS). {alone} of the events are alone with their item at their step: there popularity by step is one "
    "count, so that high shares for ITPS may only mean that it corrects little."
)
POPULARITY = (
    "Only popularity is to be had as the propensity here. Popularity is exposure × relevance: dividing it out removes "
    "relevance too. What IPS and ITPS gain on this log by a metric that rewards unpopular items proves nothing; what "
    "they gain in accuracy may be real or may be luck with the proxy."
)
SOURCES = {
    "clicked": "what was shown and left: learn exposure, by propensity.name=recorded-temporal or propensity fit",
    "propensity": "how likely it was to be shown: use it, propensity.name=logged",
    "randomised": "rows of a random policy: the only unbiased test set there is",
    "position": "where it was shown: how much is the place on the page, with what was left; propensity.name=position",
    "exposed": "whether the system showed it, or the user went looking",
    "rating": "how much it was liked: relevance apart from taking",
}
