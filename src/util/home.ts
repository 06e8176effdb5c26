/**
 * The page about Refit, from package.json. It is empty until the publisher of Refit sets it in package.json, because an
 * address that does not exist would mislead people.
 */
import manifest from '../../package.json' with { type: 'json' };

export const HOMEPAGE: string = manifest.homepage;

/** Returns the text that names a file of the repository to somebody who may have only the binary. `home` is the homepage, or empty. */
export function inRepository(file: string, home: string = HOMEPAGE): string {
  return `${file} ${home === '' ? 'in the repository of Refit' : `of ${home}`}`;
}
