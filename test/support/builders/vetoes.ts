/** The rules that an agent has of its own. */
import type { Veto } from '../../../src/agent/veto.ts';

/** An agent that forbids nothing, but a download with neither https nor a sha256. */
export function buildVeto(more: Partial<Veto> = {}): Veto {
  return {
    requireSha256: false,
    requireHttps: false,
    allowUnverified: false,
    allowedHosts: undefined,
    lowestVersion: undefined,
    refuseDowngrade: false,
    maxSignalAgeMs: 0,
    ...more,
  };
}
