/** The steps of a migration from k0s's own autopilot, in order, with commands for the nodes of this cluster. */
import type { MigratingHost, MigrationFacts } from './facts.ts';

const NO_BALANCER = 'https://LOAD_BALANCER:6443';
const USERS = ['refit-controller', 'refit-viewer', 'refit-operator'] as const;

export function stepsOf({ hosts, balancer = NO_BALANCER }: MigrationFacts): string[] {
  const controllers = hosts.filter(({ role }) => role === 'controller');
  const workers = hosts.filter(({ role }) => role === 'worker');
  const roles = controllers.map(
    ({ name }) => `sed s/CONTROL_NODE/${name}/g deploy/rbac-controlnode.yaml | kubectl apply -f -`,
  );
  const steps: readonly (readonly [string, ...string[]])[] = [
    ['Install kinds and rights.', 'kubectl apply -f deploy/crds -f deploy/rbac.yaml', ...roles],
    [
      'On a controller, make a kubeconfig for each user. k0s writes the address of one API server into it: use the load balancer.',
      `for user in ${[...USERS, ...controllers.map(userOf)].join(' ')}; do`,
      '  k0s kubeconfig create "$user" > "$user.conf"',
      `  sed -i 's#server: .*#server: ${balancer}#' "$user.conf"`,
      'done',
    ],
    [
      'Start refit controller on two hosts. They wait for the Lease, which k0s holds.',
      'refit controller --kubeconfig refit-controller.conf',
    ],
    ...controllers
      .filter(({ isOurs }) => !isOurs)
      .map((host): [string, ...string[]] => [
        `On ${host.name}: add the flag to the command line of k0s, restart it, and wait until its API server is ready. Then start Refit's agent. After the last controller Refit has the Lease.`,
        '--disable-components=autopilot',
        `refit agent --object controlnode --name ${host.name} --kubeconfig ${userOf(host)}.conf`,
      ]),
    ...workers
      .filter(({ isOurs }) => !isOurs)
      .map(({ name }): [string, ...string[]] => [
        `On ${name}: restart k0s, which learns only then that its own agent is off. Then start Refit's agent.`,
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

function userOf({ name }: MigratingHost): string {
  return `refit:controlnode:${name}`;
}
