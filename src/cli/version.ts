/** Owns the version of Refit as it tells it of itself. */
import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;
