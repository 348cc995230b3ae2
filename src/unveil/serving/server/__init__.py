"""The server: trained models behind HTTP, with a page to try them on."""

from unveil.serving.server import library as library  # first of all: says what to install where something is missing
