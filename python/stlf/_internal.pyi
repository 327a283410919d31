"""The compiled part: conversion, nothing else."""

__version__: str
