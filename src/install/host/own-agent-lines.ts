/**
 * Returns what `refit install agent` prints if k0s runs its own agent on the same host, or may run
 * one.
 */
import type { OwnAgentFacts } from '../../agent/service/worker-profile.ts';
import type { BesideK0s } from '../../agent/step-input.ts';
import { FIRST_WITH_SWITCH, heedsSwitch } from '../../signal/own-agent.ts';

interface FoundK0s extends OwnAgentFacts {
  readonly role: 'controller' | 'worker';
  readonly version: string;
}

/** These texts say what the installed agent does on a host where k0s's own agent runs, for each value of its option `--beside-k0s`. */
const CONSEQUENCE: Readonly<Record<BesideK0s, string>> = {
  observe: "Refit's agent only watches",
  refuse: "Refit's agent refuses every signal",
  replace:
    "Refit's agent acts as well, because of --beside-k0s replace, and both may replace the same binary",
};

/** Returns the lines to print. The list is empty if k0s runs no agent of its own. */
export function ownAgentLines(k0s: FoundK0s, beside: BesideK0s = 'observe'): string[] {
  if (k0s.ownAgent === true)
    return [
      `k0s runs its own agent on this host: ${CONSEQUENCE[beside]}`,
      `next: ${nextStep(k0s)}`,
    ];
  if (k0s.ownAgentDoubt === undefined || beside === 'replace') return [];
  return [`Refit's agent waits at each signal: ${k0s.ownAgentDoubt}`];
}

function nextStep({ role, version }: FoundK0s): string {
  if (role === 'controller') return 'restart k0s here with --disable-components=autopilot';
  if (!heedsSwitch(version))
    return `upgrade k0s here to ${FIRST_WITH_SWITCH} or later by a Plan that k0s's own agent carries out: a worker of ${version} cannot switch that agent off`;
  return 'run the controllers of k0s with --disable-components=autopilot, wait until k0s has rewritten the worker profiles, then restart k0s here (refit migrate k0s --check shows the profiles)';
}
