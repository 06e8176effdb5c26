/**
 * Starts the agent on the host of its pod. The pod of the DaemonSet runs Refit's image, is privileged, and shares the
 * processes of the host.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isSea } from 'node:sea';
import { RefitError } from '../../util/errors.ts';
import { AGENT_FLAGS, assertOwnedByRoot, isOwnBinary, placeBinary } from './program.ts';

/** The directory on the host that contains the program. The pod mounts this directory at the same path. */
export const DIRECTORY = '/opt/refit';
const PROGRAM = join(DIRECTORY, 'refit');

/** The program that enters namespaces. Refit's image has it, because Node.js cannot enter a namespace, and some hosts have no nsenter. */
const NSENTER = '/usr/bin/nsenter';
/**
 * The arguments to enter the namespaces of process 1, which are the namespaces of the host. The agent must access the
 * files and the network of the host, and call its service manager. With the cgroup namespace of the host, paths in
 * /proc/PID/cgroup are the paths of the host.
 */
const ENTER = ['--target=1', '--mount', '--uts', '--ipc', '--net', '--cgroup', '--'];

/**
 * The value of SSL_CERT_FILE in the image. The agent must not get it, because the file may be missing on the host, and the agent would then
 * trust no server.
 */
const CERTIFICATES_OF_IMAGE = '/etc/ssl/certs/ca-certificates.crt';
const PATH_OF_HOST = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** The same umask as in the systemd unit of the agent. */
const UMASK = 0o077;

/**
 * Copies this program onto the host if another version is there, and replaces this process with the agent. So the agent
 * is the process that the kubelet stops with SIGTERM, and no second process needs memory. Does not return.
 */
export async function startAgentOnHost(args: readonly string[]): Promise<void> {
  await demandPod();
  if ((await isOwnBinary(PROGRAM)) !== true) await placeBinary(PROGRAM);
  process.umask(UMASK);
  const agent = [PROGRAM, `--node-options=${AGENT_FLAGS.join(' ')}`, 'agent', ...args];
  // Node.js provides this function on all systems except Windows.
  process.execve?.(NSENTER, [NSENTER, ...ENTER, ...agent], environmentOfHost(process.env));
}

/** Throws REFIT_AGENT if the pod does not let the agent access its host. The error names the field of the pod to set. */
async function demandPod(): Promise<void> {
  if (!isSea()) demand('its program is not the one-file binary', "use Refit's image");
  if (process.getuid?.() !== 0)
    demand(`it runs as user ${process.getuid?.()}`, 'set securityContext.runAsUser to 0');
  if (process.pid === 1) demand('it does not see the processes of the host', 'set hostPID to true');
  const found = await stat(DIRECTORY).catch(() => undefined);
  if (found?.isDirectory() !== true)
    demand(`it has no directory ${DIRECTORY}`, `mount ${DIRECTORY} of the host, with hostPath`);
  await assertOwnedByRoot(DIRECTORY);
}

function demand(found: string, hint: string): never {
  const message = `this pod cannot start the agent on its host: ${found}`;
  throw new RefitError('REFIT_AGENT', message, {
    hint: `${hint}, as the DaemonSet of the chart does`,
  });
}

/** Returns the variables of the pod, without the variables that are valid only in its image. */
export function environmentOfHost(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(variables).filter(
    ([name, value]) => name !== 'SSL_CERT_FILE' || value !== CERTIFICATES_OF_IMAGE,
  );
  return { ...Object.fromEntries(kept), PATH: PATH_OF_HOST };
}
