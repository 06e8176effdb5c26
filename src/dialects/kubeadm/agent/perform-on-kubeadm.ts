/**
 * Carries out the steps of the agent on a kubeadm host. Agents on other hosts do not load this file. The scripts keep a journal
 * on the host, so each of them may run again.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { limitsFor } from '../../../agent/download/fetch.ts';
import type { ActiveJournal } from '../../../agent/journal.ts';
import type { ProcedureTools } from '../../../agent/procedure.ts';
import type { Step, StepOutcome } from '../../../agent/steps/step.ts';
import { configMaps, kubeletVersionOf, nodes, pods } from '../../../kube/resources.ts';
import { readServerVersion } from '../../../kube/server-version.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { defined } from '../../../util/json.ts';
import { BROKEN, runProgram } from '../../../util/run-program.ts';
import {
  compareVersionTexts,
  isNewerMinor,
  parseVersion,
  type Version,
} from '../../../util/version.ts';
import { describeFinding } from '../../../versions/findings.ts';
import { kubeadmFindings, textOf } from '../../../versions/kubeadm-rules.ts';
import type { Host, KubeadmOptions, Shells } from '../host/host.ts';
import * as hostSteps from '../host/host-steps.ts';
import { etcdAnswersFrom } from '../host/probe.ts';
import { configurationScript, kubeadmBody, kubeletBody, repairScript } from '../host/scripts.ts';
import { rollBackStaticPods } from '../host/static-pods-back.ts';
import type { FetchParts, fetchBinaries } from './fetch-binaries.ts';

export interface KubeadmTools extends ProcedureTools {
  readonly host: Host;
  readonly kubeadm: KubeadmOptions;
  readonly shells?: (abort: AbortSignal) => Shells;
  readonly fetch: typeof fetchBinaries;
}

/** Carries out one step. Rejects only when `abort` aborts; every other failure is an outcome. */
export async function performOnKubeadm(
  { kind }: Step,
  { work: { signal, policy } }: ActiveJournal,
  given: KubeadmTools,
  abort: AbortSignal,
): Promise<StepOutcome> {
  const tools = { ...given, limits: limitsFor(given.limits, policy), abort };
  const { version } = signal.command;
  const ended = new AbortController();
  const untilEnd = AbortSignal.any([abort, ended.signal]);
  const steps = {
    ...stepsOf(tools, `${signal.created.replaceAll(/\W/g, '')}-${version}`, version),
    // The step does not wait until the reason is written, because the API server may not answer until the kubelet runs.
    tell: (reason: string) => void tools.reportReason(signal, reason, untilEnd),
  };
  try {
    if (kind === 'clean-up') {
      await rm(tools.directory, { recursive: true, force: true });
      // If the signal ended after kubeadm was killed, a manifest of a static pod may be missing.
      if (tools.host.role === 'controlPlane')
        await hostSteps.succeed(steps, 'kubeadm', repairScript());
    }
    if (kind === 'stage-upgrade') {
      await assertVersionFits(tools, version);
      const binaries = await tools.fetch(signal.command, tools);
      await hostSteps.prepare(steps, { version, binaries, kubeadm: tools.kubeadm });
    }
    if (kind === 'upgrade-host') await upgrade(tools, steps);
    return { ok: true };
  } catch (error) {
    abort.throwIfAborted();
    return { ok: false, reason: messageOf(error), error };
  } finally {
    ended.abort();
  }
}

type Tools = KubeadmTools & FetchParts;

function stepsOf(tools: Tools, rollout: string, version: string): hostSteps.HostStepsParts {
  const { client, host, abort } = tools;
  const shells = (tools.shells ?? localShells)(abort);
  // A kubelet has the right to list the pods of its own Node.
  const ownPods = { namespace: 'kube-system', fieldSelector: `spec.nodeName=${host.name}` };
  return {
    ...tools,
    shells,
    rollout,
    version,
    parts: ['kubeadm', 'kubelet'],
    members: async () => {
      const answers = await etcdAnswersFrom(shells, host);
      const own = answers.get(host.name);
      // Only the etcd member on this host can name the other members.
      if (typeof own === 'string')
        throw new Error(`etcd: the member on this host does not answer: ${own}`);
      return answers;
    },
    node: async () => await client.get(nodes, host.name),
    pods: async () => (await client.listAll(pods, ownPods)).items,
  };
}

/**
 * Rejects if the host cannot be upgraded to `version` now. On a control-plane host, `kubeadm upgrade node` installs
 * only the version that Cluster API recorded before.
 */
async function assertVersionFits({ client, host }: Tools, version: string): Promise<void> {
  const cluster = await clusterVersion(client);
  const isBehind = compareVersionTexts(cluster, version) < 0;
  const isOther = host.role === 'controlPlane' && cluster !== version;
  if (isBehind || isOther)
    throw new Error(
      `ConfigMap kube-system/kubeadm-config has version ${cluster}, so this host cannot get ${version}: kubeadm upgrade apply on the first control-plane host sets the version in that ConfigMap`,
    );
  const server = await serverVersion(client);
  const wanted = parseVersion(version);
  if (wanted === undefined)
    throw new Error(`the wanted version is "${version}", which is not a version`);
  if (host.role === 'worker' && isNewerMinor(wanted, server))
    throw new Error(
      `the API server still has ${textOf(server)}: upgrade the control plane before this worker`,
    );
  const managedBy = kubeletVersionOf(await client.get(nodes, host.name));
  const kubeadm = { version, verb: 'node', cluster, ...defined({ managedBy }) } as const;
  const [broken] = kubeadmFindings({ apiServers: [], kubeadm });
  if (broken) throw new Error(describeFinding(broken));
}

/**
 * Resolves with the version of the cluster that kubeadm recorded. Rejects if the version cannot be read, because the
 * version rules cannot be checked without it.
 */
async function clusterVersion(client: Tools['client']): Promise<string> {
  const { data } = await client.get(configMaps, 'kubeadm-config', { namespace: 'kube-system' });
  const line = /^kubernetesVersion:(.*)$/m.exec(data?.['ClusterConfiguration'] ?? '');
  const found = (line?.[1] ?? '').trim().replaceAll(/^["']|["']$/g, '');
  if (parseVersion(found) === undefined)
    throw new Error(
      `clusterConfiguration.kubernetesVersion of ConfigMap kube-system/kubeadm-config is "${found}", which is not a version: correct it, then retry`,
    );
  return found;
}

/** Resolves with the version of the API server. Rejects if its answer has no version that can be compared. */
async function serverVersion(client: Tools['client']): Promise<Version> {
  const found = await readServerVersion(client);
  const version = parseVersion(found);
  if (version === undefined)
    throw new Error(
      `the API server says that its version is "${found}", which is not a version: check the server in the kubeconfig`,
    );
  return version;
}

async function upgrade(
  { host, kubeadm, directory, log, abort }: Tools,
  on: hostSteps.HostStepsParts,
): Promise<void> {
  let isKubeletTouched = false;
  let isReplaced = false;
  try {
    log.info('kubeadm starts');
    await hostSteps.untilEtcdIsHealthy(on);
    await hostSteps.carryOutOnceMore(on, 'kubeadm', kubeadmBody('node', host.role, kubeadm));
    log.info('replacing the kubelet');
    isKubeletTouched = true;
    const kubectl = { path: join(directory, 'kubectl') };
    await hostSteps.carryOut(
      on,
      'kubelet',
      kubeletBody(existsSync(kubectl.path) ? { kubectl } : {}),
    );
    isReplaced = true;
    await hostSteps.untilVerified(on);
    await hostSteps.untilEtcdIsHealthy(on);
  } catch (cause) {
    abort.throwIfAborted();
    if (!isKubeletTouched) throw cause;
    // Until the kubelet is replaced, a static pod may still restart. So the static pods are checked only after that.
    const ofPods = isReplaced ? await rollBackStaticPods(on) : '';
    throw new Error(`${messageOf(cause)}${ofPods}${await hostSteps.rollBack(on)}`, { cause });
  }
}

/**
 * Returns the host on which this process runs. Throws REFIT_AGENT if it has no kubeadm or kubelet, and REFIT_FILE if other
 * users may change a file of the options.
 */
export async function findKubeadm(
  name: string,
  root: string,
  shells: Shells,
  options: KubeadmOptions = {},
): Promise<Host> {
  // A worker does not have this file, even if it has old manifests of static pods.
  const isController = existsSync(`${root}/etc/kubernetes/controller-manager.conf`);
  const host: Host = { name, role: isController ? 'controlPlane' : 'worker' };
  const script =
    'for name in kubeadm kubelet; do command -v "$name" >/dev/null || echo "$name"; done';
  const { stdout } = await shells.run(host, script);
  const missing = stdout.trim().split('\n').join(' and ');
  if (missing === '') {
    await assertTrustedOptions(host, shells, options);
    return host;
  }
  const hint =
    'start the agent after kubeadm has joined this host; on a k0s host, start it without --procedure kubeadm';
  throw new RefitError('REFIT_AGENT', `no ${missing} in PATH (${process.env['PATH'] ?? ''})`, {
    hint,
  });
}

/**
 * Throws REFIT_FILE if users other than root may change the configuration of kubeadm, or if Refit could not check this.
 */
async function assertTrustedOptions(
  host: Host,
  shells: Shells,
  options: KubeadmOptions,
): Promise<void> {
  if (options.config === undefined) return;
  const { code, stdout, stderr } = await shells.run(host, configurationScript(options));
  const problem =
    // Guard unchecked-options. A check that failed proves nothing.
    code === 0
      ? stdout.trim()
      : `${options.config} could not be checked (exit code ${code}): ${(stderr || stdout).trim()}`;
  // Guard checked-options. kubeadm reads the configuration as root.
  if (problem !== '') throw new RefitError('REFIT_FILE', `--kubeadm-config: ${problem}`);
}

/**
 * Returns shells that run scripts on this host. `abort` only ends the wait for a script: a script that has started
 * continues. If the same script is started again, the second run waits for the end of the first run.
 */
export function localShells(abort: AbortSignal): Shells {
  return {
    async run(_host, script, patienceMs) {
      // The script is not passed as an argument, because every user of the host can read arguments. The braces make the
      // script one command. If the agent is killed while it sends the script, the shell runs no part of it.
      const input = `{\n${script}\n}\n`;
      const result = await runProgram('/bin/sh', ['-s'], { input, patienceMs, abort });
      abort.throwIfAborted();
      if (result.code !== BROKEN) return result;
      throw new RefitError('REFIT_AGENT', `a script on this host was ended: ${result.stderr}`);
    },
  };
}
