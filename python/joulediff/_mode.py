"""The dispatch mode under the values, order and replay passes: what counts as one operator.

The three passes must give an operator the same index, so that the decision is made here alone. The
mode stands below autograd and autocast, where forward, backward and optimizer look alike. What the
framework would take apart itself but does not above us (composite operators under inference mode) is
taken apart here. Fake tensors (a compiler at work) and graph capture pass unseen: the launch of the
graph is one operator. Subclasses that wrap tensors are asked to unwrap first.
"""

import contextlib
import sys
import threading

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from joulediff import _graphs, _operator


@contextlib.contextmanager
def unseen():
    """Own tensor operations: no dispatch or function mode sees them, autograd neither."""
    with torch.no_grad(), torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        yield


def synchronize():
    """Waits for the device, where there is one in use."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _capturing():
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


class OperatorMode(TorchDispatchMode):
    """Subclasses say what is done around an operator in `around`; `fail` is told of our mistakes."""

    supports_higher_order_operators = True

    def __init__(self, fail):
        super().__init__()
        self.fail = fail
        self.off = False
        self.count = 0
        self.lock = threading.RLock()
        self._here = threading.local()
        self._undo = contextlib.ExitStack()

    def begin(self):
        """From here on every operator of this thread, and of autograd's threads, is seen."""
        self.count, self.off = 0, False
        self._undo.enter_context(_eager())
        _patch_triton(self, self._undo)
        _graphs.patch_replay(self, self._undo)
        self.__enter__()

    def end(self):
        """After the step: leaves, and subclasses report."""
        self.leave()

    def close(self):
        """After its last step."""

    def leave(self):
        """Leaves the stack of modes, wherever in it the program has put us."""
        self.off = True
        above = []
        stack = _python_dispatch._get_current_dispatch_mode_stack
        try:
            if self in stack():
                while stack()[-1] is not self:
                    above.append(_python_dispatch._pop_mode())
                self.__exit__(None, None, None)
        finally:
            for mode in reversed(above):
                _python_dispatch._push_mode(mode)
            self._undo.close()

    def guarded(self, function, *args):
        """function(*args); a mistake of ours ends the recording, never the program."""
        if self.off:
            return None
        try:
            with self.lock, unseen():
                return function(*args)
        except Exception as error:  # noqa: BLE001
            self.off = True
            self.fail(error)
            return None

    def around(self, index, form, function, args, kwargs):
        raise NotImplementedError

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.off or getattr(self._here, "inside", False):
            return func(*args, **kwargs)
        for kind in types:
            if hasattr(kind, "__tensor_flatten__"):
                return NotImplemented
            if kind.__name__ in ("FakeTensor", "FunctionalTensor"):
                return func(*args, **kwargs)
        form = _operator.form_of(func)
        if not form.counted:
            return func(*args, **kwargs)
        if _capturing():
            result = func(*args, **kwargs)
            self.guarded(_graphs.note, form, args, kwargs, result)
            return result
        if form.composite:
            return self._take_apart(func, args, kwargs)
        return self._counted(form, func, args, kwargs)

    def _take_apart(self, func, args, kwargs):
        before = getattr(self._here, "within", False)
        self._here.within = True
        try:
            with self:
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        finally:
            self._here.within = before

    def launch(self, launch, args, kwargs):
        """The launch of a Triton kernel or a graph, outside any operator of the framework."""
        if self.off or getattr(self._here, "inside", False) or _capturing():
            return launch(*args, **kwargs)
        return self._counted(_operator.form_of(launch), launch, args, kwargs)

    def _counted(self, form, function, args, kwargs):
        with self.lock:
            index = self.count
            self.count += 1
        self._here.inside = True
        try:
            result = self.around(index, form, function, args, kwargs)
        finally:
            self._here.inside = False
        if getattr(self._here, "within", False) and getattr(function, "is_view", False):
            _keep_requires_grad(form, args, result)
        return result


def _keep_requires_grad(form, args, result):
    """In inference mode a view of a weight requires a gradient, but below autograd it does not.

    Inside a composite operator that is taken apart here, autograd does not come to set it. Composite
    operators ask it to choose their parts (a product folds its batch if the other side requires a
    gradient), and they must choose as they do when nobody watches.
    """
    if form.name.startswith("aten.detach") or not getattr(args[0], "requires_grad", False):
        return
    for tensor in _operator.tensors_in(result):
        if not tensor.is_inference():
            tensor.requires_grad_(True)


@contextlib.contextmanager
def _eager():
    """Compiled functions run as the eager program they were compiled from."""
    stance = getattr(torch.compiler, "set_stance", None)
    if "torch._dynamo" not in sys.modules or stance is None:
        yield
        return
    with stance("force_eager"):
        yield


def _patch_triton(mode, undo):
    jit = sys.modules.get("triton.runtime.jit")
    kernel_class = getattr(jit, "JITFunction", None)
    original = getattr(kernel_class, "run", None)
    if original is None:
        return

    def run(kernel, *args, grid=None, warmup=False, **kwargs):
        if warmup:
            return original(kernel, *args, grid=grid, warmup=warmup, **kwargs)
        launch = _operator.Launch(kernel, original, {"grid": grid, "warmup": warmup})
        return mode.launch(launch, args, kwargs)

    kernel_class.run = run
    undo.callback(setattr, kernel_class, "run", original)
