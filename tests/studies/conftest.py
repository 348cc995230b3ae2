from tests.run_folders import finished as finished
