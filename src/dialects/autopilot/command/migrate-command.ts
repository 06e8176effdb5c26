/**
 * Runs `refit migrate k0s`. It reports the progress of the migration from k0s's own autopilot, or prints the next
 * steps. It changes nothing.
 */

import type { CommandParts } from '../../../cli/contract/object-commands.ts';
import type { ConnectionFlags } from '../../../cli/options.ts';
import { table } from '../../../cli/phrases.ts';
import { harmless } from '../../../cli/status/harmless.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import { loadChosenCluster } from '../../../kube/config/kubeconfig.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { isK0sLeader } from '../../../signal/names.ts';
import { FIRST_WITH_SWITCH } from '../../../signal/own-agent.ts';
import { EXIT } from '../../../util/errors.ts';
import { listed } from '../../../util/phrases.ts';
import {
  type MigratingHost,
  type MigrationFacts,
  minorsOf,
  readFacts,
  runningVersion,
} from './migration-facts.ts';

type MigrateFlags = ConnectionFlags & { readonly plan?: boolean };

/**
 * If `flags.plan` is set, prints the steps and resolves with 0. Otherwise, resolves with the exit code of
 * `checkExitCode`.
 */
export async function migrateK0s(
  flags: MigrateFlags,
  { clock, output, abort }: CommandParts,
): Promise<number> {
  const config = await loadChosenCluster(flags);
  using client = createClient(config, { userAgent: 'refit-migrate' });
  const facts = harmless(await readFacts({ client, abort }, config.server, clock.now()));
  const problems = problemsOf(facts);
  const lines = flags.plan ? stepsOf(facts) : checkLines(facts, problems, output.size().columns);
  output.write(`${lines.join('\n')}\n`);
  return flags.plan ? EXIT.ok : checkExitCode(facts, problems);
}

/**
 * Returns 1 while a problem blocks the migration, or while Refit's agents are installed and the migration is not done.
 */
export function checkExitCode(facts: MigrationFacts, problems = problemsOf(facts)): number {
  const isBlocked = problems.length > 0 || (hasAgents(facts) && undoneOf(facts).length > 0);
  return isBlocked ? EXIT.failed : EXIT.ok;
}

const MOST_NAMES = 8;
const DONE = 'Done: every node has the agent of Refit.';

export function checkLines(
  facts: MigrationFacts,
  problems = problemsOf(facts),
  width = Number.POSITIVE_INFINITY,
): string[] {
  const { hosts, profilesOn, leader, leadingController } = facts;
  const rows = hosts.map((host) => [
    host.name,
    host.role,
    runningVersion(host),
    host.agent,
    nextOf(host, facts),
  ]);
  const who = leadingController === undefined ? 'k0s' : `k0s on ${leadingController}`;
  const leads =
    'holder' in leader
      ? `${isK0sLeader(leader.holder) ? who : 'Refit'} (${leader.holder})`
      : 'nobody, or unknown';
  const ended =
    leader.state === 'silent' ? `, which has not renewed its lease since ${leader.since}` : '';
  return [
    ...table(['NODE', 'ROLE', 'K0S', 'AGENT', 'NEXT'], rows, width),
    `leader: ${leads}${ended}`,
    `worker profiles that leave k0s's own agent on: ${profilesOn === undefined ? 'unknown, no right to read them' : listed(profilesOn, MOST_NAMES) || 'none'}`,
    ...problems.map((problem) => `blocks the migration: ${problem}`),
    ...(problems.length > 0 ? [] : endOf(facts)),
  ];
}

function endOf(facts: MigrationFacts): string[] {
  if (!hasAgents(facts)) return ['Nothing blocks the migration: see refit migrate k0s --plan.'];
  const undone = undoneOf(facts);
  return undone.length === 0 ? [DONE] : undone.map((what) => `not done: ${what}`);
}

function hasAgents({ hosts }: MigrationFacts): boolean {
  return hosts.every(({ isOurs }) => isOurs);
}

/** Returns a sentence for each part of the migration that is not done, apart from the agents on the hosts. */
function undoneOf({ profilesOn, leader }: MigrationFacts): string[] {
  const isLed = leader.state !== 'silent' && 'holder' in leader && !isK0sLeader(leader.holder);
  return [
    ...(profilesOn === undefined
      ? ['the worker profiles cannot be read: use a kubeconfig that may list ConfigMaps']
      : []),
    ...(profilesOn !== undefined && profilesOn.length > 0
      ? [
          `${listed(profilesOn, MOST_NAMES)}: workers that start with this profile run k0s's own agent: wait until k0s has rewritten it`,
        ]
      : []),
    ...(isLed
      ? []
      : ['no controller of Refit holds the Lease of the leader: start refit controller']),
  ];
}

function nextOf(
  { isOurs, canSwitchOff, role }: MigratingHost,
  { hosts, profilesOn }: MigrationFacts,
): string {
  if (isOurs) return 'nothing';
  if (!canSwitchOff) return `upgrade to ${FIRST_WITH_SWITCH} or later`;
  if (role === 'controller')
    return "restart k0s with --disable-components=autopilot, start Refit's agent";
  if (hosts.some((host) => host.role === 'controller' && !host.isOurs))
    return "when the controllers are done, restart k0s and start Refit's agent";
  // k0s rewrites the profiles within about a minute after its controllers have restarted.
  const isEarly = profilesOn !== undefined && profilesOn.length > 0;
  return `${isEarly ? 'wait for the worker profiles, then restart' : 'restart'} k0s, start Refit's agent`;
}

export function problemsOf({ hosts, isRunning }: MigrationFacts): string[] {
  const old = hosts
    .filter(({ canSwitchOff, isOurs }) => !canSwitchOff && !isOurs)
    .map(({ name }) => name);
  const tooOld = `${listed(old, MOST_NAMES)}: k0s before ${FIRST_WITH_SWITCH} keeps its own agent on workers, even with --disable-components=autopilot: upgrade first`;
  const isK0s = hosts.some(
    ({ role, version }) => role === 'controller' || version?.includes('+k0s'),
  );
  return [
    ...(isK0s
      ? []
      : ['no node runs k0s, and there is no ControlNode: use the kubeconfig of the k0s cluster']),
    ...(isRunning ? ['a Plan is under way: wait for its end, or abort it with refit abort'] : []),
    ...(old.length > 0 ? [tooOld] : []),
  ];
}

export function stepsOf({
  hosts,
  balancer = 'https://LOAD_BALANCER:6443',
}: MigrationFacts): string[] {
  const controllers = hosts.filter(({ role }) => role === 'controller');
  const leftOf = (wanted: Role) => hosts.filter(({ role, isOurs }) => role === wanted && !isOurs);
  const roles = controllers.map(
    ({ name }) =>
      `refit install rights controlnode | sed s/CONTROL_NODE/${name}/g | kubectl apply -f -`,
  );
  const steps: readonly (readonly [string, ...string[]])[] = [
    [
      'Install kinds and rights.',
      'refit install kinds | kubectl apply -f -',
      'refit install rights k0s | kubectl apply -f -',
      ...roles,
    ],
    [
      'On a controller, make a kubeconfig for each user. k0s writes the address of one API server into it: use the load balancer.',
      `for user in ${['refit-controller', 'refit-viewer', 'refit-operator', ...controllers.map(userOf)].join(' ')}; do`,
      '  k0s kubeconfig create "$user" > "$user.conf"',
      `  sed -i 's#server: .*#server: ${balancer}#' "$user.conf"`,
      'done',
    ],
    [
      'Start refit controller on two hosts. They wait for the Lease, which k0s holds.',
      'refit controller --kubeconfig refit-controller.conf',
    ],
    ...leftOf('controller').map((host): [string, ...string[]] => [
      `On ${host.name}: add the flag to the command line of k0s, restart it, and wait until its API server is ready. Then start Refit's agent. After the last controller Refit has the Lease.`,
      '--disable-components=autopilot',
      `refit agent --object controlnode --name ${host.name} --kubeconfig ${userOf(host)}.conf`,
    ]),
    ...(leftOf('worker').length > 0 ? [waitForProfiles(hosts)] : []),
    ...leftOf('worker').map(({ name }): [string, ...string[]] => [
      `On ${name}: restart k0s, which reads only at its start that its own agent is off. Then start Refit's agent.`,
      'refit agent --kubeconfig /var/lib/k0s/kubelet.conf',
    ]),
    ['Every node must show Refit as its agent.', 'refit migrate k0s --check'],
  ];
  return [
    ...steps.flatMap(([what, ...commands], index) => [
      `${index + 1}. ${what}`,
      ...commands.map((command) => `     ${command}`),
    ]),
    '',
    'To go back: stop the agents and controllers of Refit, restart the controllers of k0s without the flag, then the workers.',
    '     kubectl annotate nodes --all upgrade.refit.dev/agent-',
    '     kubectl annotate controlnodes --all upgrade.refit.dev/agent-',
  ];
}

/**
 * Returns a sentence and the commands with which the user waits until k0s has rewritten the worker profiles. If a worker starts before
 * that, its k0s starts its own agent again.
 */
function waitForProfiles(hosts: MigrationFacts['hosts']): [string, ...string[]] {
  const minors = minorsOf(hosts.filter(({ role }) => role === 'worker'));
  return [
    'Wait until k0s has switched its own agent off in the worker profiles. It does so up to a minute after the last restart of a controller.',
    ...minors.map(
      (minor) =>
        `kubectl -n kube-system wait configmap -l k0s.k0sproject.io/stack=k0s-worker-config-${minor} --for=jsonpath='{.data.autopilotDisabled}'=true --timeout=5m`,
    ),
  ];
}

function userOf({ name }: MigratingHost): string {
  return `refit:controlnode:${name}`;
}
