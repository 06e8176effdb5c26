/**
 * Stages for tests. By default they have a payload for linux-amd64. The test chooses whether they are forced, and the
 * number of slots.
 */
import type { Role, Stage, Target } from '../../../src/engine/model/rollout.ts';
import { buildTarget } from './targets.ts';

export const PAYLOAD = { url: 'https://example.com/file', sha256: 'a'.repeat(64) };

/** Returns a stage. A target that is given only by its name is pending. The command and the role make the keys unique. */
export function buildStage(
  role: Role,
  targets: readonly (string | Target)[],
  more: Partial<Stage> = {},
): Stage {
  const command = more.command ?? 0;
  return {
    id: `${command}/${role}s`,
    command,
    role,
    maxInFlight: 1,
    version: 'v1.36.3+x.2',
    payloads: { 'linux-amd64': PAYLOAD },
    forced: false,
    targets: targets.map((given) => {
      const target = typeof given === 'string' ? buildTarget(given) : given;
      return { ...target, key: `${command}/${role}/${target.name}` };
    }),
    ...more,
  };
}
