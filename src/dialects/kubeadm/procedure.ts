/** Owns the steps on one host, in order, and telling the Node of each: whoever is asked again goes on where it was left. */
import type { KubeClient } from '../../kube/client.ts';
import { nodes } from '../../kube/resources.ts';
import { isConflict, StatusError, TransportError } from '../../kube/status-error.ts';
import { type Clock, rfc3339, sleep } from '../../util/clock.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { Work, Works } from './dialect.ts';
import type { Manifest, ManifestHost } from './manifest.ts';
import { cordoned, type Report, reportPatch } from './report.ts';
import { EXIT_BUSY, type HostStep, KUBELET_BODY, kubeadmBody, stageBody, stepScript } from './scripts.ts';
import type { ShellResult, Shells } from './ssh.ts';

export interface ProcedureParts {
  readonly manifest: Manifest;
  readonly shells: Shells;
  /** Writes only while this process holds the lock. */
  readonly writer: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Milliseconds: the API server of a single control plane is away for more than a minute while kubeadm replaces it. */
const RETRY_MS = 1000;
const SSH_RETRIES = 20;
const SSH_RETRY_MS = 3000;
/** What a host does after its last step, until its Node tells the new version. */
const VERIFY = 'Verify';

export function procedures(parts: ProcedureParts): Works {
  const running = new Set<string>();
  return {
    isAt: ({ key }) => running.has(key),
    begin(work) {
      const { key, name } = work.target;
      if (running.has(key)) return Promise.resolve();
      running.add(key);
      void new Procedure(parts, work)
        .run()
        .catch((error: unknown) => parts.log.warn('work is given up', { node: name, problem: messageOf(error) }))
        .finally(() => running.delete(key));
      return Promise.resolve();
    },
  };
}

class Procedure {
  readonly #parts: ProcedureParts;
  readonly #work: Work;
  #report: Report;
  #began: number;

  constructor(parts: ProcedureParts, work: Work) {
    this.#parts = parts;
    this.#work = work;
    const { key: target, since: attempt } = work.target;
    const { campaign } = work;
    this.#began = parts.clock.monotonic();
    this.#report = { campaign, target, attempt, state: 'working', step: '', since: attempt, spent: {} };
  }

  /** Rejects where it was stopped, and where nobody could be told what happened. */
  async run(): Promise<void> {
    const { manifest } = this.#parts;
    try {
      await this.#enter('Stage');
      await this.#onHost('stage', stageBody(manifest.binaries));
      await this.#enter('Cordon');
      await this.#cordon();
      await this.#enter('Kubeadm');
      await this.#onHost('kubeadm', kubeadmBody(this.#work.verb));
      await this.#enter('Kubelet');
      await this.#onHost('kubelet', KUBELET_BODY);
      await this.#enter(VERIFY, 'finished');
    } catch (error) {
      if (this.#parts.signal.aborted) throw error;
      // The node stays cordoned: nobody knows what it can carry.
      await this.#enter(this.#report.step, 'failed', messageOf(error));
    }
  }

  async #onHost(step: HostStep, body: string): Promise<void> {
    const { target, campaign, version } = this.#work;
    const host = this.#parts.manifest.hosts.find(({ name }) => name === target.name);
    if (!host) throw new RefitError('REFIT_FILE', `the manifest has no host ${target.name} any more`);
    const { code, stdout } = await this.#ask(host, stepScript({ step, campaign, version }, body));
    this.#parts.signal.throwIfAborted();
    if (code === 0) return;
    const why = stdout.trim().replaceAll(/\s*\n\s*/g, '; ') || 'it says nothing';
    const what = code === EXIT_BUSY ? 'another step is still at work there' : why;
    throw new RefitError('REFIT_SSH', `step ${step} ended with exit code ${code}: ${what}`);
  }

  /** A connection that breaks says nothing of the step, which goes on on its host: who asks again finds it there. */
  async #ask(host: ManifestHost, script: string): Promise<ShellResult> {
    const { shells, clock, signal, log } = this.#parts;
    for (let left = SSH_RETRIES; ; left--) {
      try {
        return await shells.run(host, script);
      } catch (error) {
        signal.throwIfAborted();
        if (left === 0) throw error;
        log.warn('asking the host again', { problem: messageOf(error) });
        await sleep(clock, SSH_RETRY_MS, signal);
      }
    }
  }

  async #cordon(): Promise<void> {
    const { writer } = this.#parts;
    await this.#untilAnswered(async () => {
      const node = cordoned(await writer.get(nodes, this.#work.target.name), this.#work.campaign);
      if (node) await writer.replace(nodes, node);
    });
  }

  async #enter(step: string, state: Report['state'] = 'working', message?: string): Promise<void> {
    const { clock, writer } = this.#parts;
    const now = clock.monotonic();
    const last = this.#report;
    const spent = last.step === '' ? {} : { ...last.spent, [last.step]: Math.round(now - this.#began) };
    this.#began = now;
    this.#report = { ...last, state, step, since: rfc3339(clock.now()), spent, message };
    await this.#untilAnswered(async () => {
      const { name } = this.#work.target;
      if (this.#report.from === undefined) {
        const node = await writer.get(nodes, name);
        this.#report = { ...this.#report, from: node.status?.nodeInfo?.kubeletVersion };
      }
      await writer.patch(nodes, name, reportPatch(this.#report), { type: 'merge' });
    });
  }

  /** The API server goes away while it is replaced, and with it the lock: both come back. */
  async #untilAnswered(request: () => Promise<void>): Promise<void> {
    const { clock, signal } = this.#parts;
    for (;;) {
      signal.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        const isBusy = error instanceof StatusError && error.code >= 500;
        if (!(error instanceof TransportError) && !isConflict(error) && !isBusy) throw error;
        await sleep(clock, RETRY_MS, signal);
      }
    }
  }
}
