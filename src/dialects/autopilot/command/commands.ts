/** Lists the commands of k0s: `refit controller` and `refit migrate k0s`. */
import { InvalidArgumentError, Option } from 'commander';
import { commandPartsOf } from '../../../cli/command-parts.ts';
import type { DialectCommands } from '../../../cli/contract/dialect-commands.ts';
import type { ReversibleDialect } from '../../../cli/contract/roll-back.ts';
import { GROUP_TITLES } from '../../../cli/group-titles.ts';
import * as common from '../../../cli/options.ts';

const ROLES = ['controller', 'worker'] as const;

/** `modules` are all dialects, because the dashboard of the controller shows the plans of all. */
export const k0sCommands = (modules: readonly ReversibleDialect[]): DialectCommands => ({
  processes: [
    {
      name: 'controller',
      summary: 'Carries out Plans. Run two or more: one is the leader, and the others wait.',
      options: [
        ...common.CONTROLLER_OPTIONS,
        new Option(
          '--cluster-info <storage,network>',
          'storage and network of the cluster, which Refit sends to update servers, such as etcd,kuberouter',
        ).argParser((text) => {
          const [storage = '', network = '', ...more] = text.split(',');
          if (storage !== '' && network !== '' && more.length === 0) return { storage, network };
          throw new InvalidArgumentError(
            'write the storage and the network, such as etcd,kuberouter',
          );
        }),
        new Option(
          '--exclude-from-plans <roles>',
          'end a plan with the state Restricted if it includes nodes of these roles, such as controller,worker',
        ).argParser((text) => {
          const roles = text.split(',').map((role) => ROLES.find((known) => known === role));
          if (roles.every((role) => role !== undefined)) return roles;
          throw new InvalidArgumentError('write controller, worker, or controller,worker');
        }),
        new Option(
          '--insecure-updates',
          'allow update servers with plain http, and downloads with neither https nor a sha256',
        ),
        new Option(
          '--apply-crds',
          'at the start, apply the definitions of the kinds that the controller needs',
        ),
        new Option(
          '--ui-address <host:port>',
          'serve the dashboard at this address, to users who sign in with their token of the API server',
        ).argParser(common.parseAddress),
        new Option(
          '--ui-cert-dir <directory>',
          'with --ui-address: directory of tls.crt and tls.key (PEM); needed unless the address is 127.0.0.1',
        ),
        new Option(
          '--ui-host <name>',
          'with --ui-address: a name of the dashboard that its certificate does not have, such as that of an Ingress; may be repeated',
        ).argParser(common.addValue),
        new Option(
          '--ui-token-header <name>',
          'with --ui-address: the header in which an authenticating proxy sends the API server token of the viewer, such as X-Forwarded-Access-Token; needs --ui-trusted-proxy',
        ),
        new Option(
          '--ui-trusted-proxy <address>',
          'with --ui-token-header: the IP address or range (CIDR) of that proxy, such as 10.244.1.7; requests with that header from other addresses are refused; may be repeated',
        ).argParser(common.addValue),
      ],
      run: async (flags, { abort }) =>
        await (await import('./controller-command.ts')).runController(flags, abort, modules),
    },
  ],
  tools: [
    {
      name: 'migrate',
      group: GROUP_TITLES.before,
      summary: "Helps to move a k0s cluster from k0s's own autopilot to Refit. Changes nothing.",
      commands: [
        {
          name: 'k0s',
          summary:
            'Shows the k0s version and the agent of each node, and what to do next. Exit code 1 if something blocks the move.',
          options: [
            ...common.CLUSTER_OPTIONS,
            new Option('--check', 'show which steps are done; the default').conflicts('plan'),
            new Option('--plan', 'print all steps in order, with commands for these nodes'),
          ],
          run: async (flags, call) =>
            await (await import('./migrate-command.ts')).migrateK0s(flags, commandPartsOf(call)),
        },
      ],
    },
  ],
});
