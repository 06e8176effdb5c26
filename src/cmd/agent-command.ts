/** Runs `refit agent`: creates the parts of the agent and runs them. */
import { readFile, realpath } from 'node:fs/promises';
import { setDefaultCACertificates } from 'node:tls';
import { AGENT_HELP } from '../agent/flags.ts';
import { configPath, readFlagsFile } from '../agent/flags-file.ts';
import { ROOT } from '../agent/host-parts.ts';
import { parseAgentOptions } from '../agent/options.ts';
import { findHostnameOverride } from '../agent/registration/host-name.ts';
import { createCommands } from '../agent/service/commands.ts';
import { findServices } from '../agent/service/find-services.ts';
import { openRc } from '../agent/service/openrc.ts';
import { servicePlaces } from '../agent/service/service-place.ts';
import { serviceRestarter } from '../agent/service/service-restarter.ts';
import { systemd } from '../agent/service/systemd.ts';
import { askService } from '../agent/service/trusted-service.ts';
import { openStateDirectory } from '../agent/state/state-directory.ts';
import { assertTrustedConfig } from '../agent/state/trusted-config.ts';
import { VERSION } from '../cli/version.ts';
import { serveHost } from '../composition/agent/serve-host.ts';
import { procedureNamed } from '../dialects/modules.ts';
import { trustedAuthorities } from '../http/route.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { systemClock as clock } from '../util/clock.ts';
import { RefitError } from '../util/errors.ts';
import { stderrLogger } from '../util/log.ts';

/** Runs until `stop` aborts; rejects with a RefitError when it cannot start. */
export async function runAgent(args: readonly string[], stop: AbortSignal): Promise<void> {
  const file = configPath(args);
  const options = parseAgentOptions(
    file === undefined ? args : [...(await readFlagsFile(file)), ...args],
  );
  if (options === undefined) {
    process.stdout.write(AGENT_HELP);
    return;
  }
  await checkFileLimit();
  const log = stderrLogger(options.logLevel);
  const config = await loadClusterConfig({ path: options.kubeconfig });
  await assertTrustedConfig(config);
  // Connections without a certificate authority of their own use these certificates. By default, Node.js would load the
  // certificates of the host, which takes 2 MiB of memory.
  setDefaultCACertificates(
    (config.certificateAuthority ?? /^http:/.exec(config.server)) ? [] : trustedAuthorities(),
  );
  const paths = await openStateDirectory(options.stateDirectory, options.runDirectory);
  const binary = options.binary === undefined ? undefined : await findBinary(options.binary);
  // The timeout is short, because the agent cannot start before this search has ended.
  const askStatus = async (socket: string) => await askService(socket, 2_000);
  const isKubeadm = options.procedure === 'kubeadm';
  const search = isKubeadm ? () => [] : findServices;
  const flags = { ...options.place, ...(isKubeadm && (await findHostnameOverride(ROOT))) };
  const places = servicePlaces({ flags, findServices: search, askStatus, clock, log });
  if (!isKubeadm) await places.search();
  const commands = createCommands(process.env, clock);
  const restarter = serviceRestarter([systemd(commands), openRc(commands)], log);
  const tools = { clock, random: Math.random, log };
  const findProcedure = procedureNamed(options.procedure);
  const own = { config, paths, places, binary, restarter, version: VERSION, findProcedure };
  await serveHost({ ...tools, options, ...own }, stop);
  log.info('agent stopped');
}

/**
 * Twice the number of files that the agent has open at the same time while it watches, downloads, and runs commands of
 * the service manager.
 */
const LEAST_OPEN_FILES = 128;

/** Throws REFIT_AGENT if the process may open too few files, because requests and commands would then fail at random or never end. */
async function checkFileLimit(): Promise<void> {
  // If the kernel does not provide the limit, it is not checked.
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const limit = /^Max open files +(\d+)/m.exec(limits)?.[1];
  if (limit === undefined || Number(limit) >= LEAST_OPEN_FILES) return;
  const hint = 'raise LimitNOFILE in the unit of the agent, or run `ulimit -n` before you start it';
  const message = `this process may open only ${limit} files, and the agent needs ${LEAST_OPEN_FILES}`;
  throw new RefitError('REFIT_AGENT', message, { hint });
}

/** Returns the path of the binary without symbolic links, so that an update does not replace a link with a file. */
async function findBinary(path: string): Promise<string> {
  return await realpath(path).catch((cause: unknown) => {
    throw new RefitError('REFIT_FILE', `there is no binary at ${path}`, { cause });
  });
}
