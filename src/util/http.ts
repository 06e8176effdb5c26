/** Provides the HTTP module of Node.js without `fetch`, for processes that must stay small. */
import type * as Http from 'node:http';

/**
 * The code loads the module without an import. An import of `node:http` would also load the client that implements
 * `fetch`, which takes 10 MiB in each agent.
 */
export const http: typeof Http = process.getBuiltinModule('node:http');
