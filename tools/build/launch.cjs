#!/usr/bin/env node
/** The `refit` command of the npm package: says on an old Node.js that it is too old. In syntax that every Node.js reads. */
'use strict';

var leastMajor = Number('LEAST_MAJOR');
/** Beside this file once both are built. */
var program = './program.js';

if (parseInt(process.versions.node, 10) < leastMajor) {
  process.stderr.write(
    'refit needs Node.js ' +
      leastMajor +
      ' or newer, and this is ' +
      process.version +
      ': install a newer one, or use the one-file binary of the release, which needs none\n',
  );
  process.exit(2);
} else {
  // Compiled once for all starts, if this user may write there. Whoever may do that may change the program, too.
  require('node:module').enableCompileCache(__dirname + '/compiled');
  require(program);
}
