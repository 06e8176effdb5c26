/**
 * Runs a credential plugin, one process at a time. Its credential is used until it expires or the
 * server refuses it.
 */
import { type ExecFileException, execFile } from 'node:child_process';
import type { Clock } from '../../util/clock.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { isRecord, isText, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { type ClusterConfig, clusterEntry, type ExecConfig } from './cluster-config.ts';

/** What a plugin printed. */
export interface ExecCredential {
  readonly token?: string | undefined;
  /** PEM text. The same is true for `key`. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  /** Wall-clock milliseconds; undefined if the credential is valid until the server refuses it. */
  readonly expiresAt?: number | undefined;
}

/** Milliseconds that one run may take. A plugin may have to ask a distant identity provider. */
const PLUGIN_TIMEOUT_MS = 60_000;

export interface ExecPlugin {
  /**
   * Returns a valid credential. Concurrent callers share one process, which `closed` ends. It rejects
   * with REFIT_KUBECONFIG if the plugin fails.
   */
  credential(closed?: AbortSignal): Promise<ExecCredential>;
  /** Drops the refused credential, unless a newer one has replaced it. */
  expire(refused: ExecCredential | undefined): void;
}

/** Returns a plugin, whose process starts when a credential is needed. `caText` is the PEM text of the cluster's authority. */
export function execPlugin(
  config: ExecConfig,
  cluster: ClusterConfig,
  caText: string | undefined,
  clock: Clock,
): ExecPlugin {
  const told = { ...clusterEntry(cluster, caText), 'proxy-url': cluster.proxyUrl };
  const spec = { interactive: false, ...(config.provideClusterInfo && { cluster: told }) };
  const info = JSON.stringify({ apiVersion: config.apiVersion, kind: 'ExecCredential', spec });
  let current: ExecCredential | undefined;
  let running: Promise<ExecCredential> | undefined;
  return {
    async credential(closed) {
      if (current && clock.now() < (current.expiresAt ?? Number.POSITIVE_INFINITY)) return current;
      running ??= run(config, info, closed).finally(() => {
        running = undefined;
      });
      current = await running;
      return current;
    },
    expire(refused) {
      if (current === refused) current = undefined;
    },
  };
}

async function run(
  config: ExecConfig,
  info: string,
  signal: AbortSignal | undefined,
): Promise<ExecCredential> {
  const { command, args, env, installHint } = config;
  const stdout = await new Promise<string>((resolve, reject) => {
    const variables = { ...process.env, ...env, KUBERNETES_EXEC_INFO: info };
    const options = { env: variables, timeout: PLUGIN_TIMEOUT_MS, signal };
    const child = execFile(command, [...args], options, (error, out, err) => {
      if (!error) return resolve(out);
      const hint = installHint ? `; ${installHint}` : '';
      reject(pluginError(command, `failed: ${err.trim() || failureOf(error)}${hint}`));
    });
    child.stdin?.end();
  });
  return readCredential(stdout, command);
}

/**
 * Returns the error for a plugin that failed. `problem` continues the sentence that names the
 * plugin.
 */
export function pluginError(command: string, problem: string): RefitError {
  const hint = 'run the plugin by hand to see the problem';
  return new RefitError('REFIT_KUBECONFIG', `exec plugin ${command} ${problem}`, { hint });
}

/**
 * Describes why the process failed. The message of Node.js is not used, because it quotes the
 * arguments, which may contain a token.
 */
function failureOf(error: ExecFileException): string {
  const { code, signal, killed } = error;
  if (typeof code === 'string') return messageOf(error);
  if (killed === true) return `no answer within ${PLUGIN_TIMEOUT_MS / 60_000} min`;
  return code === undefined || code === null ? `ended by ${signal}` : `exit code ${code}`;
}

function readCredential(stdout: string, command: string): ExecCredential {
  const status = statusOf(stdout);
  if (!status) throw pluginError(command, 'printed no ExecCredential with a status');
  const text = (field: string) => {
    const value = ownMember(status, field);
    return isText(value) ? value : undefined;
  };
  const token = text('token');
  const certificate = text('clientCertificateData');
  const key = text('clientKeyData');
  if (!token && !certificate) throw pluginError(command, 'printed neither token nor certificate');
  const expiresAt = Date.parse(text('expirationTimestamp') ?? '');
  return {
    token,
    ...(certificate && key ? { certificate, key } : {}),
    expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt,
  };
}

function statusOf(stdout: string): Record<string, unknown> | undefined {
  const answer = parseJson(stdout);
  const status = isRecord(answer) ? answer['status'] : undefined;
  return isRecord(status) ? status : undefined;
}
