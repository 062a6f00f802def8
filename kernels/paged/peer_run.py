"""One run of a peer: all layers of a third-party attention as one CUDA graph."""

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from audit import Array

_TIMED = 3  # replays to compare backends


class LayersRun:
    """All layers of a peer: `calls[layer]()` enqueues one and returns its output, f16 [rows, G, D], on the device.

    `note` names the backend and, where the capture as one graph failed, the reason.
    """

    def __init__(self, torch: Any, device: str, calls: Sequence[Callable[[], Any]], note: str = "") -> None:
        self.note = note
        self._torch, self._calls = torch, calls
        self._graph: Any = None
        # Compiles, loads and allocates everything that a capture must not.
        self._outputs = [call() for call in calls]
        if device == "cuda":
            self._capture()

    def replay(self) -> None:
        """Enqueue the work of all layers on torch's current stream without waiting for it."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._outputs = [call() for call in self._calls]

    def out(self, layer: int) -> Array:
        """f16 [rows, G, D]: the output of a layer in the last replay."""
        output = self._outputs[layer]
        if output.is_cuda:
            self._torch.cuda.synchronize()  # the replay may have run on a stream that is no longer current
        return np.ascontiguousarray(output.cpu().numpy())

    def milliseconds(self) -> float:
        """The fastest of a few replays, by the clock of the GPU."""
        cuda, taken = self._torch.cuda, []
        for _ in range(_TIMED):
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self.replay()
            end.record()
            end.synchronize()
            taken.append(start.elapsed_time(end))
        return float(min(taken))

    def _capture(self) -> None:
        cuda = self._torch.cuda
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        try:
            with cuda.graph(graph):
                outputs = [call() for call in self._calls]
        except RuntimeError as error:
            self.note = f"{self.note}; launched one by one, because the capture failed: {first_line(error)}"
            warnings.warn(f"peer {self.note}", stacklevel=2)
            return
        self._graph, self._outputs = graph, outputs
        cuda.synchronize()

    def __del__(self) -> None:
        cuda = None if sys.is_finalizing() else self._torch.cuda
        if cuda is not None and cuda.is_available():
            cuda.synchronize()  # a replay may still be reading
            self.__dict__.clear()  # until then the allocator has nothing to free
            cuda.empty_cache()


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
