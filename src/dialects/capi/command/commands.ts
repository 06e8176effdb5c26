/** Lists the command for Cluster API. */
import { Option } from 'commander';
import type { DialectCommands } from '../../../cli/contract/dialect-commands.ts';
import * as common from '../../../cli/options.ts';

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
    '--rollouts <of>',
    'owner: all Machines of a MachineDeployment or of a control plane are one plan; machine: each Machine is a plan of its own',
  )
    .choices(['owner', 'machine'])
    .default('owner'),
  new Option(
    '--management-kubeconfig <file>',
    'kubeconfig of the cluster with the Machines; default: that of the cluster with the Nodes',
  ),
  new Option(
    '--workload-clusters [namespace]',
    'serve all Clusters, or those of one namespace, with their Secrets NAME-kubeconfig; --kubeconfig is then for the cluster with the Machines',
  ).conflicts('managementKubeconfig'),
];

export const machineProcesses: DialectCommands = {
  processes: [
    {
      name: 'capi-extension',
      summary: 'Upgrades Machines of Cluster API in place.',
      options: [...EXTENSION_OPTIONS, ...common.CONTROLLER_OPTIONS],
      run: async (flags, { abort }) =>
        await (await import('./capi-extension.ts')).runCapiExtension(flags, abort),
    },
  ],
  tools: [],
};
