"""Two kernels compared without a project: `audit compare old.cu new.cu --entry softmax --inputs make.py:inputs`."""
