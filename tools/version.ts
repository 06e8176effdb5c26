/**
 * Runs within `npm version`, after package.json has the new number and before the commit: moves the unreleased changes
 * in the changelog to a section for the new version.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { VERSION } from '../src/cli/version.ts';
import { RefitError } from '../src/util/errors.ts';
import { runMain } from './main.ts';

const CHANGELOG = new URL('../CHANGELOG.md', import.meta.url);
const UNRELEASED = '## Unreleased\n';

/**
 * Returns the changelog with a section for the version. `day` has the form 2026-11-20. Throws REFIT_FILE if there are
 * no unreleased changes.
 */
export function withRelease(changelog: string, version: string, day: string): string {
  const [before, after = ''] = changelog.split(UNRELEASED);
  if (!/^\s*(?:#{3}|\*)/.test(after))
    throw new RefitError(
      'REFIT_FILE',
      `CHANGELOG.md has nothing under "${UNRELEASED.trim()}": write what is new in ${version}`,
    );
  return `${before}${UNRELEASED}\n## ${version} (${day})\n${after}`;
}

if (import.meta.main)
  await runMain(async () => {
    const day = new Date().toISOString().slice(0, 10);
    writeFileSync(CHANGELOG, withRelease(readFileSync(CHANGELOG, 'utf8'), VERSION, day));
    return await Promise.resolve(0);
  });
