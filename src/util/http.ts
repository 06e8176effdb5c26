/** Node's HTTP module without `fetch`, for processes that must stay small. */
import type * as Http from 'node:http';

/** An import of `node:http` would load the client behind `fetch` too: 10 MiB in each agent. */
export const http: typeof Http = process.getBuiltinModule('node:http');
