from tests.runs import finished as finished
