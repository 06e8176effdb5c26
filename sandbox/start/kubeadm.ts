/** Demonstrates kubeadm over SSH: stand-in hosts behind SSH servers, upgraded by `refit kubeadm apply`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { table } from '../../src/cli/phrases.ts';
import { nodes } from '../../src/kube/resources.ts';
import { EXIT } from '../../src/util/errors.ts';
import { startSandboxPlane } from '../cluster/plane.ts';
import { REFIT } from '../refit.ts';
import { type SshCluster, startSshCluster } from '../sshd/cluster.ts';
import { startJavascriptServer } from '../sshd/javascript-server.ts';
import { logOf } from '../sshd/stand-in-host.ts';
import type { Demonstration, Ground } from './demonstration.ts';

const CONTROL_PLANE = 2;
const WORKERS = 2;
const FROM = 'v1.36.2';
const TO = 'v1.36.3';

export const kubeadm: Demonstration = {
  dialect: 'kubeadm',
  about: [
    `Starts an API server in memory and ${CONTROL_PLANE + WORKERS} stand-in hosts, each a directory behind an SSH server with stand-ins for`,
    'kubeadm, kubelet and systemctl. Runs `refit kubeadm apply` with the ssh client of this machine. Everything is removed at the end.',
  ],
  flags: {},
  help: {},
  async run(_flags, ground) {
    const { directory, started, abort, say } = ground;
    say(
      `Starting an API server in memory, ${CONTROL_PLANE} control-plane hosts and ${WORKERS} workers behind SSH…`,
    );
    const plane = await startSandboxPlane(directory);
    started.defer(async () => await plane.stop());
    const kubeconfig = await plane.kubeconfig('admin');
    const cluster = await startSshCluster({
      directory: join(directory, 'hosts'),
      controlPlane: CONTROL_PLANE,
      workers: WORKERS,
      version: FROM,
      offers: [TO],
      url: plane.url,
      adminKubeconfig: kubeconfig,
      kubeconfig,
      startServer: startJavascriptServer,
    });
    started.defer(async () => await cluster.stop());
    abort.throwIfAborted();
    const manifest = await cluster.manifest(TO, (each) =>
      Object.assign(each, { concurrent: WORKERS }),
    );
    say(`refit kubeadm apply --yes -m ${manifest}\n`);
    const code = await apply(manifest, cluster, ground);
    if (code === EXIT.interrupted) return code;
    for (const line of await summarize(cluster)) say(line);
    await ground.keep?.(kubeconfig);
    return code;
  },
};

/** Runs the command in its own process on the same terminal, as users run it. */
async function apply(
  manifest: string,
  { apiPort }: SshCluster,
  { abort, directory }: Ground,
): Promise<number> {
  const args = ['kubeadm', 'apply', '--yes', '-m', manifest, '--api-port', String(apiPort)];
  const environment = { ...process.env, TMPDIR: directory };
  const refit = spawn(process.execPath, [REFIT, ...args], {
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const interrupt = (): void => void refit.kill('SIGINT');
  abort.addEventListener('abort', interrupt);
  const [code] = (await once(refit, 'exit')) as [number | null];
  abort.removeEventListener('abort', interrupt);
  return code ?? EXIT.interrupted;
}

/** Reads the result from the hosts and their Nodes. */
async function summarize({ hosts, client }: SshCluster): Promise<string[]> {
  const rows = await Promise.all(
    hosts.map(async (host) => {
      const { status, spec } = await client.get(nodes, host.name);
      const commands = await logOf(host, 'kubeadm');
      const isOpen = spec?.unschedulable !== true;
      return [
        host.name,
        host.role,
        status?.nodeInfo?.kubeletVersion ?? '',
        commands.join(', '),
        isOpen ? 'yes' : 'no',
      ];
    }),
  );
  return ['', ...table(['HOST', 'ROLE', 'KUBELET', 'KUBEADM', 'SCHEDULABLE'], rows)];
}
