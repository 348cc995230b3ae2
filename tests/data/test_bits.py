import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.mapped import Bits

truths = st.lists(st.booleans(), min_size=1, max_size=70)


@given(truths, st.data())
def test_bits_against_an_array(flags: list[bool], data: st.DataObject) -> None:
    array = np.array(flags)
    bits = Bits(len(array))
    drawn = iter(flags)
    bits.fill(lambda count: np.array([next(drawn) for _ in range(count)]))
    start = data.draw(st.integers(0, len(array) - 1))
    stop = data.draw(st.integers(start + 1, len(array)))
    with bits.open(slice(start, stop)) as some:
        some[:] = ~some
    array[start:stop] = ~array[start:stop]
    gone = np.array(sorted(data.draw(st.sets(st.integers(0, len(array) - 1)))), int)
    bits.clear(gone)
    array[gone] = False
    at = np.array(data.draw(st.lists(st.integers(0, len(array) - 1), max_size=9)), int)
    assert bits[at].tolist() == array[at].tolist()
    assert np.concatenate([flag_B for _, flag_B in bits]).tolist() == array.tolist()
    assert (len(bits), bits.count()) == (len(array), array.sum())
