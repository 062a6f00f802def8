"""A peer at work: all layers of somebody else's attention as one CUDA graph."""

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from audit import Array

_TIMED = 3  # replays by which backends are compared


class LayersRun:
    """All layers of a peer: `calls[layer]()` enqueues one and gives its output, f16 [rows, G, D], on the device.

    `note` says how it runs: which backend, and why not as one graph where the capture failed.
    """

    def __init__(self, torch: Any, device: str, calls: Sequence[Callable[[], Any]], note: str = "") -> None:
        self.note = note
        self._torch, self._calls = torch, calls
        self._graph: Any = None
        # Compiles, loads and allocates what must not come up in a capture.
        self._outputs = [call() for call in calls]
        if device == "cuda":
            self._capture()

    def replay(self) -> None:
        """Put the work of all layers on torch's current stream; nothing is waited for."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._outputs = [call() for call in self._calls]

    def out(self, layer: int) -> Array:
        """f16 [rows, G, D]: what the last replay left for a layer."""
        output = self._outputs[layer]
        if output.is_cuda:
            self._torch.cuda.synchronize()  # the replay may be on a stream that is no longer the current one
        return np.ascontiguousarray(output.cpu().numpy())

    def milliseconds(self) -> float:
        """The quickest of a few replays, on the GPU's own clock."""
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
            self.note = f"{self.note}; launched one by one, since it could not be captured: {first_line(error)}"
            warnings.warn(f"peer {self.note}", stacklevel=2)
            return
        self._graph, self._outputs = graph, outputs
        cuda.synchronize()

    def __del__(self) -> None:
        cuda = None if sys.is_finalizing() else self._torch.cuda
        if cuda is not None and cuda.is_available():
            cuda.synchronize()  # a replay may still be reading
            self.__dict__.clear()  # only then is there anything for the allocator to give back
            cuda.empty_cache()


def first_line(error: Exception) -> str:
    """The first line of what an error says, its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
