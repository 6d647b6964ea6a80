"""noiseproof inside other libraries: import the module that is named after the library."""
