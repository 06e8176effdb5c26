/** The command behind `npm run testenv`: a real control plane in the foreground, for work by hand. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT, RefitError, usageError } from '../src/util/errors.ts';
import { type ControlPlane, startControlPlane } from './controlplane/control-plane.ts';
import { kubectl } from './controlplane/kubectl.ts';
import { simulatedNodes } from './controlplane/simulated-nodes.ts';
import { runMain } from './main.ts';

const MAX_NODES = 1000;
const CRDS = join(import.meta.dirname, '..', 'deploy', 'crds');

const HELP = `Usage: npm run testenv -- up [--nodes N]

Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, with the roles of deploy/rbac.yaml
and the CRDs of deploy/crds, prints a kubeconfig, and runs until Ctrl-C. Nothing is left behind.

  --nodes N   simulated nodes w1 to wN, linux/amd64, played by kwok (default 0, at most ${MAX_NODES})
  --help      this text
`;

type Command = { readonly name: 'help' } | { readonly name: 'up'; readonly nodes: number };

function parseCommand(args: string[]): Command {
  const { values, positionals } = parse(args);
  if (values.help === true) return { name: 'help' };
  if (positionals.length !== 1 || positionals[0] !== 'up') {
    const found = positionals.length === 0 ? 'none was given' : `found "${positionals.join(' ')}"`;
    throw new RefitError('REFIT_USAGE', `the only command is "up", ${found}`);
  }
  const { nodes = '0' } = values;
  if (!/^\d+$/.test(nodes) || Number(nodes) > MAX_NODES) {
    throw new RefitError(
      'REFIT_USAGE',
      `--nodes wants a whole number from 0 to ${MAX_NODES}, found "${nodes}"`,
    );
  }
  return { name: 'up', nodes: Number(nodes) };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: { nodes: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    });
  } catch (error) {
    throw usageError(error);
  }
}

/** Runs until `abort` aborts. */
async function up(nodes: number, abort: AbortSignal): Promise<void> {
  const controlPlane = await startControlPlane({
    components: [
      'kube-controller-manager',
      'kube-scheduler',
      ...(nodes > 0 ? (['kwok'] as const) : []),
    ],
    abort,
  });
  try {
    const kubeconfig = await controlPlane.kubeconfig('admin');
    await populate(controlPlane, kubeconfig, nodes);
    process.stdout.write(
      `Kubernetes runs at ${controlPlane.url}, simulated nodes: ${nodes}. Ctrl-C ends it.\n` +
        `kubeconfig: ${kubeconfig}\nkubectl:    ${controlPlane.kubectl}\nexport KUBECONFIG=${kubeconfig}\n`,
    );
    if (!abort.aborted) await once(abort, 'abort');
  } finally {
    await controlPlane.stop();
  }
}

async function populate(
  controlPlane: ControlPlane,
  kubeconfig: string,
  nodes: number,
): Promise<void> {
  const call = async (args: string[], input?: string): Promise<void> => {
    const { ok, stderr } = await kubectl(controlPlane.kubectl, kubeconfig, args, input);
    if (!ok) throw new RefitError('REFIT_TESTENV', `kubectl ${args.join(' ')}: ${stderr.trim()}`);
  };
  if (existsSync(CRDS)) await call(['apply', '-f', CRDS]);
  if (nodes === 0) return;
  // The validation is off, because nodeInfo is not complete.
  await call(['create', '--validate=ignore', '-f', '-'], simulatedNodes(nodes));
  await call(['wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=5m']);
}

/** The exit code. */
async function main(args: string[], abort: AbortSignal): Promise<number> {
  const command = parseCommand(args);
  if (command.name === 'help') process.stdout.write(HELP);
  else await up(command.nodes, abort);
  return EXIT.ok;
}

await runMain(main);
