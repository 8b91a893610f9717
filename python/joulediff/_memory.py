"""Values in the host's memory, as a recorder's library is told of them, whatever the framework."""

import ctypes
import itertools
import math
import weakref

from joulediff import _abi

_ids, _storages = itertools.count(1), itertools.count(1)


class Observer:
    """Tells the recorder of each value once. A value has `id`, `role`, `offset`, `shape`, `stride` and a `storage`,
    which has an `array` and a `number`.
    """

    def __init__(self, recorder, host):
        """host(array): a row-major numpy array and the dtype's code; (None, 0): unreadable."""
        self._recorder, self._host = recorder, host
        self._hosts = weakref.WeakKeyDictionary()  # storage -> (array, code)
        self.unreadable = 0

    def __call__(self, value):
        if value.id is not None:
            return
        value.id = next(_ids)
        storage = value.storage
        if storage.number is None:
            storage.number = next(_storages)
        if storage not in self._hosts:
            self._hosts[storage] = self._host(storage.array)
        self._report(value, *self._hosts[storage])

    def _report(self, value, array, code):
        shape, stride = value.shape, value.stride
        if len(shape) > _abi.MAX_DIMS:
            shape, stride = (math.prod(shape),), (1,)
        info = _abi.TensorInfo(id=value.id, storage=value.storage.number, version=0, offset=value.offset,
                               dims=len(shape), role=value.role)
        info.shape[:len(shape)], info.stride[:len(shape)] = shape, stride
        info.fingerprint.dtype = code
        if code and math.prod(shape):
            self._recorder.observe(ctypes.byref(info), array.ctypes.data + value.offset * array.itemsize)
            return
        if not code:  # unknown values equal no others
            self.unreadable += 1
            info.fingerprint.count = math.prod(shape)
            info.fingerprint.own[0], info.fingerprint.own[1] = value.id & 0xFFFFFFFF, ~value.id & 0xFFFFFFFF
        self._recorder.tensor(ctypes.byref(info))

    def tell(self):
        """What could not be read, as a diagnostic."""
        if self.unreadable:
            self._recorder.diagnostic("warning", "unreadable_tensors",
                                      f"{self.unreadable} tensors had no values that we can read")
