/** Says which images of a plan a policy refuses. */
import { because, type Reason } from '../model/reasons.ts';
import type { Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Matches a complete digest. A registry always gives the same image for a digest, while a tag may name another image tomorrow. */
const DIGEST = /@sha256:[0-9a-f]{64}$/;

/** Returns the reasons why the policy refuses the images of the stage, one for each image. */
export function imageProblems(
  { images = [] }: Pick<Stage, 'images'>,
  { name, requireImageDigest }: Pick<RolloutPolicy, 'name' | 'requireImageDigest'>,
): Reason[] {
  if (requireImageDigest !== true) return [];
  const wish = `UpgradePolicy ${name} requires one; to allow this, set spec.payloads.requireImageDigest: false in the policy`;
  return images
    .filter(({ image }) => !DIGEST.test(image))
    .map(({ field, image }) =>
      because(
        'Unverified',
        `the image ${JSON.stringify(image)} of ${field} has no digest (@sha256: and 64 hexadecimal digits), and ${wish}`,
        // The details name refused downloads, and an image is none of them.
        { downloads: [] },
      ),
    );
}
