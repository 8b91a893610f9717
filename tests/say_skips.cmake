# Read by ctest before the tests: why some will be skipped.
execute_process(RESULT_VARIABLE lacks_torch COMMAND ${CMAKE_CURRENT_LIST_DIR}/python -c
  "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)")
if(lacks_torch)
  message("e2e_record, e2e_workers, e2e_server, e2e_seeds and e2e_engine are skipped: neither .venv nor "
    "python3 has torch; tools/setup test makes a .venv that has it")
endif()
