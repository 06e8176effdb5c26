/** Lists the commands of `refit`. A new command needs a file in src/cli, an entry here, and a section in docs/reference/cli.md. */

import { Argument, InvalidArgumentError, Option } from 'commander';
import { completionOf, KUBECTL_COMPLETION, SHELLS, type Shell } from '../cli/completion.ts';
import * as common from '../cli/options.ts';
import { standardOutput } from '../cli/output.ts';
import type { CommandSpec } from '../cli/program.ts';
import { VERSION } from '../cli/version.ts';
import type { WhyFlags } from '../cli/why/why-command.ts';
import { MODULES } from '../dialects/modules.ts';
import { RefitError } from '../util/errors.ts';
import { CONTROL_COMMANDS } from './control-commands.ts';
import { INSTALL_COMMANDS } from './install-commands.ts';
import { objectCommands } from './object-commands.ts';
import { partsOf } from './session-parts.ts';

const EXTENSION_OPTIONS: readonly Option[] = [
  ...common.PAYLOAD_OPTIONS,
  new Option('--address <host:port>', 'serve the hooks at this address')
    .argParser(common.parseAddress)
    .default('127.0.0.1:9443'),
  new Option(
    '--cert-dir <directory>',
    'directory of tls.crt and tls.key (PEM); read again when they change',
  ).default('/tmp/k8s-webhook-server/serving-certs'),
  new Option(
    '--client-ca <file>',
    'CA of the client certificates of Cluster API (PEM); other callers are refused',
  ),
  new Option(
    '--client-name <name>',
    'with --client-ca: accept only certificates with this subject CN or DNS name; may be repeated',
  )
    .argParser(common.addValue)
    .conflicts('insecureNoClientAuth'),
  new Option(
    '--insecure-no-client-auth',
    'instead of --client-ca: serve callers without a certificate; anybody who reaches the address can then upgrade nodes',
  ),
  new Option(
    '--updater-certs <directory>',
    'directory that has a folder for each clientCertificate of an UpdaterSet; each folder has tls.crt and tls.key',
  ),
  new Option('--call-timeout <time>', 'time to answer a call, unless its caller allows more')
    .argParser(common.parseTime)
    .default(10_000, '10s'),
  new Option(
    '--delete-stuck-after <time>',
    'delete the Machine of a worker if its node has reported nothing for this time after the deadline of its update; default: none is deleted',
  ).argParser(common.parseTime),
  new Option(
    '--management-kubeconfig <file>',
    'kubeconfig of the cluster with the Machines; default: that of the cluster with the Nodes',
  ),
  new Option(
    '--workload-clusters [namespace]',
    'serve all Clusters, or those of one namespace, with their Secrets NAME-kubeconfig; --kubeconfig is then for the cluster with the Machines',
  ).conflicts('managementKubeconfig'),
];

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

const ROLES = ['controller', 'worker'] as const;

/** All commands, in the order of the help. The code of a command is imported only when it runs, so that `refit` starts fast. */
export const COMMANDS: readonly CommandSpec[] = [
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
      await (await import('./controller-command.ts')).runController(flags, abort),
  },
  {
    name: 'capi-extension',
    summary: 'Upgrades Machines of Cluster API in place.',
    options: [...EXTENSION_OPTIONS, ...common.CONTROLLER_OPTIONS],
    run: async (flags, { abort }) =>
      await (await import('../dialects/capi/command/capi-extension.ts')).runCapiExtension(
        flags,
        abort,
      ),
  },
  {
    name: 'system-upgrade-controller',
    summary:
      "Carries out Rancher's Plans in place of Rancher's controller. Environment variables configure it.",
    run: async (_flags, { abort }) =>
      await (
        await import('../dialects/cattle/command/system-upgrade-controller.ts')
      ).runSystemUpgradeController(process.env, abort),
  },
  // This entry is for the help only. refit.ts runs the agent without loading this list; its flags are in src/agent/flags.ts.
  { name: 'agent', summary: 'Upgrades the node it runs on; see refit agent --help.' },
  {
    name: 'status',
    summary:
      'Shows the state of every plan: what is in progress, what waits and why, and what comes next.',
    options: [
      ...common.CONNECTION_OPTIONS,
      ...common.FILTER_OPTIONS,
      new Option(
        '-w, --watch',
        'follow until all plans have ended; exit code 0 if all are done, else 1',
      ),
      new Option(
        '--timeout <time>',
        'with --watch: stop after this time, such as 2h, with exit code 1; default: no limit',
      ).argParser(common.parseTime),
      common.outputForm('text', 'wide', 'json', 'yaml'),
    ],
    run: async (flags, call) =>
      await (await import('../cli/status/status-command.ts')).runStatus(flags, partsOf(call)),
  },
  {
    name: 'why',
    summary: 'Explains why a plan or a node waits or failed, and what to do.',
    argument: new Argument('[node]', 'explain only this node, or the node of this Machine'),
    options: [
      ...common.CONNECTION_OPTIONS,
      ...common.FILTER_OPTIONS,
      common.outputForm('text', 'json'),
      new Option(
        '--dump <file>',
        'write everything that Refit saw of the plans into this file, without Secrets; refit replay shows the file without the cluster',
      ).conflicts('output'),
    ],
    run: async (flags: WhyFlags & { readonly dump?: string }, call) => {
      const parts = partsOf(call);
      if (flags.dump === undefined)
        return await (await import('../cli/why/why-command.ts')).showWhy(
          call.argument,
          flags,
          parts,
        );
      if (call.argument !== undefined)
        throw new RefitError('REFIT_USAGE', '--dump writes whole plans: leave out the node');
      return await (await import('../cli/why/turn-file.ts')).dumpTurn(flags.dump, flags, parts);
    },
  },
  {
    name: 'replay',
    summary: 'Shows a file of `refit why --dump` again, as this release explains and decides it.',
    argument: new Argument('<file>', 'the file'),
    run: async (_flags, { argument = '', output = standardOutput }) =>
      await (await import('../cli/why/turn-file.ts')).replayTurn(argument, output, MODULES),
  },
  {
    name: 'preview',
    summary: 'Shows the upgrade order, and what would block it. Writes nothing.',
    options: [
      ...common.CONNECTION_OPTIONS,
      new Option(
        '-f, --file <file>',
        'file with Plans, a folder of such files, or - for standard input; may be repeated; default: plans of the cluster that have not ended',
      ).argParser(common.addValue),
      new Option(
        '--cluster <name>',
        'preview the Machines of this Cluster of Cluster API instead',
      ).conflicts('file'),
      new Option('--to <version>', 'with --cluster: the new version'),
      new Option('-n, --namespace <name>', 'namespace of that Cluster; default: default'),
      common.outputForm('text', 'json'),
    ],
    notes: 'For a kubeadm manifest use `refit kubeadm plan`.',
    run: async (flags, call) =>
      (flags['cluster'] ?? flags['to'] ?? flags['namespace']) === undefined
        ? await (await import('../cli/preview/preview-command.ts')).showPreview(
            flags,
            partsOf(call),
          )
        : await (await objectCommands()).preview(flags, partsOf(call)),
  },
  {
    name: 'dashboard',
    summary: 'Serves a page at 127.0.0.1 about all plans, until Ctrl-C.',
    options: [
      ...common.CONNECTION_OPTIONS,
      new Option('--port <port>', 'port on 127.0.0.1; 0 for a free one')
        .argParser((text) => (text === '0' ? 0 : common.parsePort(text)))
        .default(0),
      new Option('--no-open', 'print the URL, and do not open a browser'),
      new Option('--allow-actions', 'show buttons that control plans with your rights'),
    ],
    run: async (flags, call) =>
      await (await import('../cli/dashboard/dashboard-command.ts')).runDashboard(
        flags,
        partsOf(call),
      ),
  },
  {
    name: 'history',
    summary: 'Shows the last runs of each plan, and why they ended.',
    argument: new Argument('[plan]', 'only this plan'),
    options: [...common.CLUSTER_OPTIONS, common.outputForm('text', 'json')],
    run: async (flags, call) =>
      await (await import('../cli/history/history-command.ts')).showHistory(
        call.argument,
        flags,
        partsOf(call),
      ),
  },
  {
    name: 'report',
    summary: 'Writes one file about a plan: its nodes over time, waits, failures and versions.',
    argument: new Argument('[plan]', 'the plan; not needed if there is only one'),
    options: [
      ...common.CONNECTION_OPTIONS,
      ...common.PLACE_OPTIONS,
      common.outputForm('html', 'svg', 'json', 'markdown'),
    ],
    run: async (flags, call) =>
      await (await import('../cli/report/report-command.ts')).writeReport(
        call.argument,
        flags,
        partsOf(call),
      ),
  },
  ...CONTROL_COMMANDS,
  {
    name: 'updates',
    summary:
      'Shows the channels that the cluster follows: the running version, the offered version, and what comes next.',
    options: [...common.CONNECTION_OPTIONS, common.outputForm('text', 'json')],
    run: async (flags, call) =>
      await (await import('../cli/updates/updates-command.ts')).showUpdates(flags, partsOf(call)),
    commands: [
      {
        name: 'check',
        summary: 'Makes the leader ask the channel now, and shows the result.',
        argument: new Argument('[name]', 'check only this UpdateConfig'),
        options: [...common.CONNECTION_OPTIONS, common.outputForm('text', 'json')],
        run: async (flags, call) =>
          await (await import('../cli/updates/updates-command.ts')).checkUpdates(
            call.argument,
            flags,
            partsOf(call),
          ),
      },
    ],
  },
  {
    name: 'serve',
    summary: 'Runs an update server: serves releases and channels to clusters.',
    argument: new Argument('<directory>', 'directory that `refit bundle` made'),
    options: [
      new Option('--address <host:port>', 'serve at this address')
        .argParser(common.parseAddress)
        .default('127.0.0.1:8080'),
      new Option(
        '--url <url>',
        'base URL of the files in indexes; default: the address that the client used',
      ).argParser(
        common.matching(
          /^https?:\/\/[^\s/]\S*$/i,
          'write a URL, such as https://updates.example.com',
        ),
      ),
      new Option(
        '--host <name>',
        'without --url: also answer clients that use this name; may be repeated',
      ).argParser(common.addValue),
      new Option(
        '--cert-dir <directory>',
        'directory of tls.crt and tls.key (PEM); default: plain http',
      ),
      new Option(
        '--token-file <file>',
        'file with tokens for the channels, one a line; default: anybody may read the channels',
      ),
      common.HEALTH_ADDRESS,
      common.LOG_LEVEL,
    ],
    run: async (flags, { argument = '', abort }) =>
      await (await import('./update-server-command.ts')).runServe(argument, flags, abort),
  },
  {
    name: 'bundle',
    summary:
      'Makes the directory of an update server: collects and verifies all files, then publishes them at once.',
    argument: new Argument('<directory>', 'directory to make for `refit serve`'),
    options: [
      new Option(
        '-f, --file <file>',
        'file with releases, the sources of their files, and channels',
      ),
      new Option('--unpack <archive>', 'first publish everything in this archive'),
      new Option(
        '--pack <archive>',
        'at the end, write one archive with everything that is published',
      ),
    ],
    run: async (flags, { argument = '', ...call }) =>
      await (await import('./update-server-command.ts')).runBundle(argument, flags, call),
  },
  {
    name: 'validate',
    summary:
      'Checks files with Plans, UpgradePolicies, UpdateConfigs or a kubeadm manifest, without a cluster.',
    argument: new Argument(
      '<file...>',
      'files to check, folders of such files, or - for standard input',
    ),
    run: async (_flags, { values = [], write }) =>
      await (await import('../cli/validate.ts')).validate(values, write, MODULES),
  },
  {
    name: 'kubeadm',
    summary: 'Upgrades a kubeadm cluster over SSH, according to a manifest.',
    commands: [
      {
        name: 'plan',
        summary: 'Shows what apply would do, and every rule that it would break. Changes nothing.',
        options: [...KUBEADM_OPTIONS, ...KUBEADM_STAGES],
        run: async (flags, { abort }) =>
          await (await import('../dialects/kubeadm/command/kubeadm-command.ts')).planKubeadm(
            flags,
            abort,
          ),
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
          await (await import('../dialects/kubeadm/command/restore-etcd.ts')).restoreEtcd(
            flags,
            abort,
          ),
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
          await (await import('../dialects/kubeadm/command/kubeadm-command.ts')).applyKubeadm(
            flags,
            abort,
          ),
      },
    ],
  },
  ...INSTALL_COMMANDS,
  {
    name: 'migrate',
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
          await (await import('../dialects/autopilot/command/migrate-command.ts')).migrateK0s(
            flags,
            partsOf(call),
          ),
      },
    ],
  },
  {
    name: 'completion',
    summary:
      'Prints a script that lets your shell complete commands, options, and names of nodes and plans.',
    argument: new Argument('<shell>', 'your shell, or kubectl for `kubectl refit`').choices([
      ...SHELLS,
      'kubectl',
    ]),
    run: async (_flags, { argument, write }) =>
      await Promise.resolve(
        write(
          argument === 'kubectl' ? KUBECTL_COMPLETION : completionOf(argument as Shell, COMMANDS),
        ),
      ),
  },
  {
    name: 'version',
    summary: 'Prints the version of Refit.',
    run: async (_flags, { write }) => await Promise.resolve(write(`refit ${VERSION}\n`)),
  },
];
