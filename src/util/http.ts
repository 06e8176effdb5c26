/** Owns the way to Node's HTTP module for processes that must stay small. */
import type * as Http from 'node:http';

/**
 * Importing `node:http` as an ECMAScript module reads all that it exports, `WebSocket` among them, and so loads the whole
 * client behind `fetch`: 10 MiB in each agent. Asking for the module does not.
 */
export const http: typeof Http = process.getBuiltinModule('node:http');
