/** Lists the commands that install Refit, remove it, and make credentials. */
import { Argument, Option } from 'commander';
import type { InstallComponent } from '../cli/contract/install-component.ts';
import type { SessionDialect } from '../cli/contract/session-dialect.ts';
import {
  CLUSTER_OPTIONS,
  DRY_RUN,
  matching,
  outputForm,
  PAYLOAD_OPTIONS,
  parseTime,
} from '../cli/options.ts';
import type { CommandSpec } from '../cli/program.ts';
import { RIGHTS } from '../install/right-names.ts';
import { systemClock } from '../util/clock.ts';

/** What these commands need to know about a dialect. */
interface InstalledDialect extends SessionDialect {
  readonly install: InstallComponent | undefined;
}

/** Returns the commands. Each module may bring one component that runs in the cluster. */
export function installCommands(modules: readonly InstalledDialect[]): readonly CommandSpec[] {
  const components = modules.flatMap(({ install }) => install ?? []);
  return [
    {
      name: 'install',
      summary: 'Prints or applies the manifests of a component; on a host, installs the agent.',
      commands: [INSTALL_AGENT, INSTALL_RIGHTS, INSTALL_KINDS, ...components.map(installationOf)],
    },
    {
      name: 'uninstall',
      summary: 'Removes what refit install created.',
      commands: [
        UNINSTALL_AGENT,
        ...modules.flatMap((module) =>
          module.install === undefined ? [] : removalOf(module.install, module, components),
        ),
      ],
    },
    CREDENTIALS,
  ];
}

const INSTALL_AGENT: CommandSpec = {
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
};

const INSTALL_RIGHTS: CommandSpec = {
  name: 'rights',
  summary: 'Prints the rights that a feature needs in addition to those of the components.',
  argument: new Argument('<name>', 'the feature').choices(RIGHTS),
  run: async (_flags, { argument = '', write }) => {
    const { rightsOf } = await import('../install/rights.ts');
    write(rightsOf(argument));
  },
};

const INSTALL_KINDS: CommandSpec = {
  name: 'kinds',
  summary: 'Prints the definitions of the kinds for Plans of k0s.',
  run: async (_flags, { write }) => {
    const { kindsOfK0s } = await import('../install/manifests.ts');
    write(kindsOfK0s());
  },
};

function installationOf(component: InstallComponent): CommandSpec {
  return {
    name: component.name,
    summary: `Prints the manifests of ${component.title}, or applies them.`,
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
      ...(component.hasPayload ? PAYLOAD_OPTIONS : []),
    ],
    run: async (flags, call) =>
      await (await import('../install/cluster-command.ts')).installComponent(
        component,
        flags,
        call,
      ),
  };
}

const UNINSTALL_AGENT: CommandSpec = {
  name: 'agent',
  summary: 'Stops the agent on this host, and removes the agent and its state.',
  run: async (_flags, { write }) =>
    await (await import('../install/host/host-command.ts')).uninstallAgent(write),
};

function removalOf(
  component: InstallComponent,
  module: SessionDialect,
  all: readonly InstallComponent[],
): CommandSpec {
  return {
    name: component.name,
    summary: `Removes ${component.title} from the cluster.`,
    options: [
      ...CLUSTER_OPTIONS,
      new Option(
        '--delete-plans',
        'also delete the namespaces and definitions that refit install created, and with them all Plans',
      ),
    ],
    run: async (flags, call) => {
      const { assertNoOpenPlan } = await import('../cli/status/status-session.ts');
      await assertNoOpenPlan(flags, { modules: [module], clock: systemClock, abort: call.abort });
      const { uninstallComponent } = await import('../install/cluster-command.ts');
      await uninstallComponent(component, all, flags, call);
    },
  };
}

const CREDENTIALS: CommandSpec = {
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
};
