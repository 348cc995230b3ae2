"""One thread a worker: as many workers as cores keep all of them busy, and no figure depends on how many there are."""

#: Libraries read these when they are loaded; a worker is a fresh interpreter and loads them anew.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
