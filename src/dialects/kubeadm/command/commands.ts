/** Lists the commands for kubeadm over SSH. */
import { Option } from 'commander';
import type { DialectCommands } from '../../../cli/contract/dialect-commands.ts';
import * as common from '../../../cli/options.ts';

const KUBEADM_OPTIONS: readonly Option[] = [
  ...common.CONNECTION_OPTIONS,
  new Option(
    '-m, --manifest <file>',
    'file with the hosts, how to reach them, and the wanted version',
  ).default('cluster.yaml'),
  new Option(
    '-o, --output <form>',
    'output format; json: one object at the end, everything else on standard error',
  )
    .choices(['text', 'json'])
    .default('text'),
];

const KUBEADM_STAGES: readonly Option[] = [
  common.JOB_NAMESPACES,
  new Option(
    '--force',
    'start although Nodes have the label of a KubeOne upgrade, and remove the label at the end',
  ),
  new Option('--skip-addons', 'leave the addons of the manifest as they are'),
  new Option('--force-conflicts', 'let addons take over fields that others manage'),
  new Option(
    '--upgrade-machine-deployments',
    'upgrade the MachineDeployments of machine-controller after all hosts',
  ),
  new Option(
    '--back',
    'go back to the version of the manifest, an older patch that the hosts ran before the last upgrade',
  ),
];

export const kubeadmCommands: DialectCommands = {
  processes: [],
  tools: [
    {
      name: 'kubeadm',
      summary: 'Upgrades a kubeadm cluster over SSH, according to a manifest.',
      commands: [
        {
          name: 'plan',
          summary:
            'Shows what apply would do, and every rule that it would break. Changes nothing.',
          options: [...KUBEADM_OPTIONS, ...KUBEADM_STAGES],
          run: async (flags, { abort }) =>
            await (await import('./kubeadm-command.ts')).planKubeadm(flags, abort),
        },
        {
          name: 'restore-etcd',
          summary:
            'Replaces the data of etcd on all control-plane hosts with a snapshot. In a terminal it asks first.',
          options: [
            ...KUBEADM_OPTIONS,
            new Option(
              '--snapshot <path>',
              'the snapshot, at the same absolute path on every control-plane host',
            ).makeOptionMandatory(),
          ],
          run: async (flags, { abort }) =>
            await (await import('./restore-etcd.ts')).restoreEtcd(flags, abort),
        },
        {
          name: 'apply',
          summary:
            'Shows the plan, asks, and carries it out. Run it again to continue after an interruption.',
          options: [
            ...KUBEADM_OPTIONS,
            ...KUBEADM_STAGES,
            new Option('-y, --yes', 'do not ask'),
            new Option(
              '--digest <digest>',
              'carry out only the plan with this digest, which refit kubeadm plan shows',
            ),
            new Option(
              '--report <file>',
              'write what was done to this file: Markdown for *.md, otherwise JSON',
            ),
            common.leaseDuration('how long a killed run keeps the lock, in whole seconds'),
          ],
          run: async (flags, { abort }) =>
            await (await import('./kubeadm-command.ts')).applyKubeadm(flags, abort),
        },
      ],
    },
  ],
};
