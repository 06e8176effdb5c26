/** Stages for tests: forced or not, with a payload for linux-amd64 and as many slots as told. */
import type { Role, Stage, Target } from '../../../src/engine/model/rollout.ts';
import { buildTarget } from './targets.ts';

export const PAYLOAD = { url: 'https://example.com/file', sha256: 'a'.repeat(64) };

/** Targets given by name only are pending. Keys are made unique by command and role. */
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
