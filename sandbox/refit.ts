/** The one file that Node runs as `refit` in tests, demonstrations and stand-in clusters. */
import { join } from 'node:path';

/** The environment variable with the path of the built file, if there is one. */
export const BUILT = 'REFIT_BUILT';

export const REFIT_SOURCE = join(import.meta.dirname, '..', 'src', 'cmd', 'refit.ts');

/** `npm test` builds Refit once, since Node needs several times as long to start it from its source. */
export const REFIT = process.env[BUILT] ?? REFIT_SOURCE;
