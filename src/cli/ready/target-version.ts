/** Reads the version to which a cluster is to go. */
import { RefitError } from '../../util/errors.ts';
import { parseVersion } from '../../util/version.ts';

/** Numbers of a version have no zeros before them: no release has such a version. */
const ZERO_BEFORE = /(?:^v|\.)0\d/;

/** Returns the version with its `v`. A minor version such as `1.37` stands for its first release. Throws REFIT_USAGE. */
export function readTargetVersion(text: string): string {
  const version = `v${text.replace(/^v/, '')}`;
  const whole = /^v\d+\.\d+$/.test(version) ? `${version}.0` : version;
  const [numbers = ''] = whole.split(/[-+]/, 1);
  if (parseVersion(whole) !== undefined && !ZERO_BEFORE.test(numbers)) return whole;
  throw new RefitError(
    'REFIT_USAGE',
    `--to must be a version such as v1.37 or v1.37.2+k0s.0, found "${text}"`,
  );
}
