/** Runs `refit migrate k0s`: says how far a cluster is on its way from k0s's own autopilot, or prints the steps. Changes nothing. */
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { isK0sLeader } from '../../signal/names.ts';
import { EXIT } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { ConnectionFlags } from '../options.ts';
import { table } from '../phrases.ts';
import type { SessionParts } from '../status/session.ts';
import { harmless } from '../status/view.ts';
import { FIRST, type MigratingHost, type MigrationFacts, readFacts } from './facts.ts';
import { stepsOf } from './steps.ts';

export interface MigrateFlags extends ConnectionFlags {
  readonly plan?: boolean;
}

/** Resolves with 0; of a check with 1 if something is in the way. */
export async function migrateK0s(flags: MigrateFlags, { clock, output, abort }: SessionParts): Promise<number> {
  const config = await loadClusterConfig({ path: flags.kubeconfig, context: flags.context });
  using client = createClient(config, { userAgent: 'refit-migrate' });
  const facts = harmless(await readFacts(client, config.server, clock.now(), abort));
  const problems = problemsOf(facts);
  const lines = flags.plan ? stepsOf(facts) : checkLines(facts, problems);
  output.write(`${lines.join('\n')}\n`);
  return flags.plan || problems.length === 0 ? EXIT.ok : EXIT.failed;
}

const MOST_NAMES = 8;
const DONE = 'Done: every node has the agent of Refit.';

export function checkLines(facts: MigrationFacts, problems = problemsOf(facts)): string[] {
  const { hosts, profilesOn, leader } = facts;
  const rows = hosts.map((host) => [host.name, host.role, host.version ?? 'unknown', host.agent, nextOf(host)]);
  const isDone = hosts.every(({ isOurs }) => isOurs);
  const holder = 'holder' in leader ? leader.holder : undefined;
  const leads = holder === undefined ? 'nobody, or unknown' : `${isK0sLeader(holder) ? 'k0s' : 'Refit'} (${holder})`;
  return [
    ...table(['NODE', 'ROLE', 'K0S', 'AGENT', 'NEXT'], rows),
    `leader: ${leads}`,
    `worker profiles that leave k0s's own agent on: ${profilesOn === undefined ? 'unknown, no right to read them' : listed(profilesOn, MOST_NAMES) || 'none'}`,
    ...problems.map((problem) => `in the way: ${problem}`),
    ...(problems.length > 0 ? [] : [isDone ? DONE : 'Nothing is in the way: see refit migrate k0s --plan.']),
  ];
}

function nextOf({ isOurs, canSwitchOff, role }: MigratingHost): string {
  if (isOurs) return 'nothing';
  if (!canSwitchOff) return `upgrade to ${FIRST} or later`;
  return role === 'controller'
    ? "restart k0s with --disable-components=autopilot, start Refit's agent"
    : "restart k0s after the controllers, start Refit's agent";
}

export function problemsOf({ hosts, isRunning }: MigrationFacts): string[] {
  const old = hosts.filter(({ canSwitchOff, isOurs }) => !canSwitchOff && !isOurs).map(({ name }) => name);
  return [
    ...(isRunning ? ['a Plan is under way: wait for its end, or abort it with refit abort'] : []),
    ...(old.length > 0
      ? [
          `${listed(old, MOST_NAMES)}: k0s before ${FIRST} keeps its own agent on workers whatever the flag says: upgrade first`,
        ]
      : []),
  ];
}
