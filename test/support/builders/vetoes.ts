/** The rules of an agent for what it refuses, for tests. */
import type { Veto } from '../../../src/agent/veto.ts';

/** Returns the rules of an agent that refuses only downloads that have neither https nor a sha256. */
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
