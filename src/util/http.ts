/** Node's HTTP module without `fetch`, for processes that must stay small. */
import type * as Http from 'node:http';

/**
 * An ECMAScript import of `node:http` reads every export, `WebSocket` too, and so loads the client behind `fetch`: 10 MiB in
 * each agent. `getBuiltinModule` does not.
 */
export const http: typeof Http = process.getBuiltinModule('node:http');
