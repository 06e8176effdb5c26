/**
 * Lists the commands of `refit`. A new command needs a file in src/cli, an entry here, and a section in
 * docs/reference/cli.md. The module of a dialect brings the commands that only this dialect has.
 */

import { Argument, Option } from 'commander';
import { commandPartsOf } from '../cli/command-parts.ts';
import { completionOf, KUBECTL_COMPLETION, SHELLS, type Shell } from '../cli/completion.ts';
import { GROUP_TITLES } from '../cli/group-titles.ts';
import * as common from '../cli/options.ts';
import { standardOutput } from '../cli/output.ts';
import type { CommandSpec } from '../cli/program.ts';
import type { StatusFlags } from '../cli/status/status-command.ts';
import { VERSION } from '../cli/version.ts';
import type { WhyFlags } from '../cli/why/why-command.ts';
import { RefitError } from '../util/errors.ts';
import { inGroups } from './command-groups.ts';
import { CONTROL_COMMANDS } from './control-commands.ts';
import { type DialectCall, type DialectSpec, partsOf, withModules } from './dialect-call.ts';
import { installCommands } from './install-commands.ts';
import { objectCommands } from './object-commands.ts';
import { planArgument, planOf } from './plan-argument.ts';

/** The commands that serve all dialects, in the order of the help. */
const FOR_ALL_DIALECTS: readonly DialectSpec[] = [
  {
    name: 'status',
    summary:
      'Shows the state of every plan: what is in progress, what waits and why, and what comes next.',
    argument: planArgument('only this plan'),
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
    run: async (flags: StatusFlags, call) =>
      await (await import('../cli/status/status-command.ts')).runStatus(
        { ...flags, ...planOf(flags, call) },
        partsOf(call),
      ),
  },
  {
    name: 'why',
    summary: 'Explains why a plan or a node waits or failed, and what to do.',
    argument: new Argument(
      '[node]',
      'explain only this node, the node of this Machine, or this plan',
    ),
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
    name: 'logs',
    summary: 'Shows the steps of a node, and the last lines of the pods that upgrade it.',
    argument: new Argument('<node>', 'the node, or the Machine that is updated on it'),
    options: [
      ...common.CONNECTION_OPTIONS,
      new Option('--tail <lines>', 'lines of each container')
        .argParser(common.parseLines)
        .default(20),
    ],
    run: async (flags, call) =>
      await (await import('../cli/logs/logs-command.ts')).showLogs(
        call.argument ?? '',
        flags,
        partsOf(call),
      ),
  },
  {
    name: 'replay',
    summary: 'Shows a file of `refit why --dump` again, as this release explains and decides it.',
    argument: new Argument('<file>', 'the file'),
    run: async (_flags, { argument = '', output = standardOutput, modules }) =>
      await (await import('../cli/why/turn-file.ts')).replayTurn(argument, output, modules),
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
      common.NO_READY,
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
        : await (await objectCommands(call.modules)).preview(flags, partsOf(call)),
  },
  {
    name: 'ready',
    summary: 'Says whether the cluster can take a version, and what would break. Writes nothing.',
    options: [
      ...common.CONNECTION_OPTIONS,
      new Option('--to <version>', 'the new version, such as v1.37'),
      new Option(
        '-f, --file <file>',
        'take the version and the policies from this file with Plans, from a folder of such files, or from - for standard input; may be repeated',
      ).argParser(common.addValue),
      new Option(
        '-m, --manifest <file>',
        'take the version from this manifest of a kubeadm cluster, and look at its hosts over SSH, too',
      ),
      new Option(
        '--cluster <name>',
        'look at the workload cluster of this Cluster of Cluster API; needs --to and the kubeconfig of the management cluster',
      ),
      new Option('-n, --namespace <name>', 'namespace of that Cluster; default: default'),
      common.ACCEPT_CHECK,
      new Option(
        '--helm-releases',
        'also look for removed APIs in the stored releases of Helm, which are Secrets or ConfigMaps',
      ),
      new Option('--strict', 'exit with 1 also if a question has no answer'),
      common.outputForm('text', 'json'),
    ],
    run: async (flags, { modules, ...call }) =>
      await (await import('../cli/ready/ready-command.ts')).showReadiness(flags, {
        ...commandPartsOf(call),
        modules,
        rights: async () => (await import('./component-rights.ts')).componentRights(modules),
      }),
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
      new Option('--cluster-name <name>', 'name of the cluster on the page and in its title'),
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
      common.NO_READY,
      common.ACCEPT_CHECK,
      new Option(
        '-o, --output <form>',
        'output format; default: markdown on a terminal, else html',
      ).choices(['html', 'svg', 'json', 'markdown']),
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
    name: 'notify',
    summary: 'Tests the receivers of messages that UpgradePolicies name.',
    commands: [
      {
        name: 'test',
        summary: 'Sends a test message to a receiver, with your rights and from this machine.',
        argument: new Argument('<receiver>', 'the receiver, as NAME or POLICY/NAME'),
        options: common.CLUSTER_OPTIONS,
        run: async (flags, { argument = '', ...call }) =>
          await (await import('../cli/notify/test-receiver.ts')).testReceiver(
            argument,
            flags,
            commandPartsOf(call),
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
    run: async (_flags, { values = [], write, modules }) =>
      await (await import('../cli/validate.ts')).validate(values, write, modules),
  },
];

/** Returns the commands of a dialect, in this group unless the dialect has chosen another one. */
function inGroup(
  group: keyof typeof GROUP_TITLES,
  commands: readonly CommandSpec[],
): CommandSpec[] {
  return commands.map((command) => ({ group: GROUP_TITLES[group], ...command }));
}

/**
 * Returns all commands, in the order of the help. The code of a command is imported only when it runs, so that `refit`
 * starts fast.
 */
export async function commandsOf(modules: DialectCall['modules']): Promise<readonly CommandSpec[]> {
  const ofDialects = await Promise.all(
    modules.map(async (module) => await module.commands(modules)),
  );
  const commands: CommandSpec[] = inGroups([
    ...ofDialects.flatMap(({ processes }) => inGroup('run', processes)),
    // This entry is for the help only. refit.ts runs the agent without loading this list; its flags are in
    // src/agent/flags.ts.
    { name: 'agent', summary: 'Upgrades the node it runs on; see refit agent --help.' },
    ...FOR_ALL_DIALECTS.map((command) => withModules(command, modules)),
    ...ofDialects.flatMap(({ tools }) => inGroup('control', tools)),
    ...installCommands(modules),
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
            argument === 'kubectl' ? KUBECTL_COMPLETION : completionOf(argument as Shell, commands),
          ),
        ),
    },
    {
      name: 'version',
      summary: 'Prints the version of Refit.',
      run: async (_flags, { write }) => await Promise.resolve(write(`refit ${VERSION}\n`)),
    },
  ]);
  return commands;
}
