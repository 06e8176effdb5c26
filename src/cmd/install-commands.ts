/** Lists the commands that install Refit, remove it, and make credentials. */
import { Argument, Option } from 'commander';
import {
  CLUSTER_OPTIONS,
  DRY_RUN,
  matching,
  outputForm,
  PAYLOAD_OPTIONS,
  parseTime,
} from '../cli/options.ts';
import type { CommandSpec } from '../cli/program.ts';
import { MODULES } from '../dialects/modules.ts';
import type { Component } from '../install/manifests.ts';
import { RIGHTS } from '../install/right-names.ts';
import { systemClock } from '../util/clock.ts';

/** The components that run in the cluster: name, description, and the dialect of their plans. */
const COMPONENTS: readonly (readonly [Component, string, string])[] = [
  ['controller', 'the controller for Plans of k0s', 'autopilot'],
  ['cattle', 'the replacement for system-upgrade-controller', 'cattle'],
  ['capi', 'the extension for Cluster API', 'capi'],
];

export const INSTALL_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'install',
    summary: 'Prints or applies the manifests of a component; on a host, installs the agent.',
    commands: [
      {
        name: 'agent',
        summary: 'Installs and starts the agent on this host, which runs k0s or kubeadm.',
        options: [
          new Option('--procedure <name>', 'what runs on this host')
            .choices(['k0s', 'kubeadm'])
            .default('k0s'),
          new Option(
            '--credentials <file>',
            'kubeconfig for the agent on a controller; default: the agent gets its own credentials',
          ),
        ],
        run: async (flags, { write }) =>
          await (await import('../install/host/host-command.ts')).installAgent(flags, write),
      },
      {
        name: 'rights',
        summary: 'Prints the rights that a feature needs in addition to those of the components.',
        argument: new Argument('<name>', 'the feature').choices(RIGHTS),
        run: async (_flags, { argument = '', write }) => {
          const { rightsOf } = await import('../install/rights.ts');
          write(rightsOf(argument));
        },
      },
      {
        name: 'kinds',
        summary: 'Prints the definitions of the kinds for Plans of k0s.',
        run: async (_flags, { write }) => {
          const { kindsOfK0s } = await import('../install/manifests.ts');
          write(kindsOfK0s());
        },
      },
      ...COMPONENTS.map(
        ([name, what]): CommandSpec => ({
          name,
          summary: `Prints the manifests of ${what}, or applies them.`,
          options: [
            ...CLUSTER_OPTIONS,
            new Option('--apply', 'apply the manifests; default: print them'),
            DRY_RUN,
            new Option(
              '--image <name>',
              'image of Refit, such as registry.example.com/refit:1.2.3',
            ).argParser(
              matching(/^[\w.:/@-]+$/, 'write an image, such as registry.example.com/refit:1.2.3'),
            ),
            ...(name === 'capi' ? PAYLOAD_OPTIONS : []),
          ],
          run: async (flags, call) =>
            await (await import('../install/cluster-command.ts')).installComponent(
              name,
              flags,
              call,
            ),
        }),
      ),
    ],
  },
  {
    name: 'uninstall',
    summary: 'Removes what refit install created.',
    commands: [
      {
        name: 'agent',
        summary: 'Stops the agent on this host, and removes the agent and its state.',
        run: async (_flags, { write }) =>
          await (await import('../install/host/host-command.ts')).uninstallAgent(write),
      },
      ...COMPONENTS.map(
        ([name, what, dialect]): CommandSpec => ({
          name,
          summary: `Removes ${what} from the cluster.`,
          options: [
            ...CLUSTER_OPTIONS,
            new Option(
              '--delete-plans',
              'also delete the namespaces and definitions that refit install created, and with them all Plans',
            ),
          ],
          run: async (flags, call) => {
            const { assertNoOpenPlan } = await import('../cli/status/status-session.ts');
            const modules = MODULES.filter((each) => each.name === dialect);
            await assertNoOpenPlan(flags, { modules, clock: systemClock, abort: call.abort });
            return await (await import('../install/cluster-command.ts')).uninstallComponent(
              name,
              flags,
              call,
            );
          },
        }),
      ),
    ],
  },
  {
    name: 'credentials',
    summary: 'Makes credentials for agents.',
    commands: [
      {
        name: 'controlnode',
        summary: 'Gives the agent on one controller its rights, and prints a kubeconfig for it.',
        argument: new Argument('<name>', 'name of the ControlNode'),
        options: [
          ...CLUSTER_OPTIONS,
          new Option('--node <name>', 'name of its Node, if pods run on that controller'),
          new Option('--duration <time>', 'how long the certificate is valid')
            .argParser(parseTime)
            .default(8_760 * 3_600_000, '8760h'),
          outputForm('kubeconfig', 'exec-credential'),
        ],
        run: async (flags, { argument = '', ...call }) =>
          await (
            await import('../install/credentials/credentials-command.ts')
          ).controlNodeCredentials(argument, flags, call),
      },
    ],
  },
];
