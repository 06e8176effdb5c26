/** Runs the containers of one pod in order, and reports the state of each container. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Pod, secrets } from '../../src/kube/resources.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { type Running, runContainer } from './container.ts';
import { type ContainerSpec, fieldOf, specOf, type VolumeSpec } from './pod-spec.ts';

export interface PodRunParts {
  readonly client: KubeClient;
  /** The directory of this pod. */
  readonly directory: string;
  /** The directory below which all hostPath volumes are. */
  readonly hostRoot: string;
  /** Maps an image to the words of its command. */
  readonly images: Readonly<Record<string, readonly string[]>>;
  readonly report: (status: object) => void;
}

/** Milliseconds between the end of a container and its next start. */
const RESTART_MS = 100;
const KILLED = 137;

type State = Readonly<Record<string, object>>;

export class PodRun {
  readonly #pod: Pod;
  readonly #parts: PodRunParts;
  readonly #states = new Map<string, { state: State; restartCount: number }>();
  readonly #running = new Set<Running>();
  readonly #stopping = new AbortController();
  readonly #startTime = rfc3339(systemClock.now());
  /** True while the machine is down: then the pod reports nothing. */
  #isSilent = false;
  #failure: { reason?: string; message?: string } = {};
  readonly ended: Promise<void>;

  constructor(pod: Pod, parts: PodRunParts) {
    this.#pod = pod;
    this.#parts = parts;
    for (const { name } of this.#specs())
      this.#set(name, { waiting: { reason: 'PodInitializing' } });
    this.ended = this.#run();
  }

  /** Sends SIGTERM, and SIGKILL after the grace period. */
  stop(graceSeconds: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new Error('the pod is stopped'));
    for (const each of this.#running) each.kill('SIGTERM');
    const cancel = systemClock.schedule(graceSeconds * 1000, () => this.#killAll());
    void this.ended.finally(cancel);
  }

  /** Kills the containers without a report, as a power cut does. */
  async cut(): Promise<void> {
    this.#isSilent = true;
    this.#stopping.abort(new Error('the machine is down'));
    this.#killAll();
    await this.ended;
  }

  /** Reports the pod as a kubelet finds it after a reboot: its containers were killed. */
  reportLost(): void {
    this.#isSilent = false;
    for (const [name, { state }] of this.#states)
      if (!('terminated' in state)) this.#end(name, KILLED);
    this.#report('Failed');
  }

  async #run(): Promise<void> {
    const { activeDeadlineSeconds, initContainers = [], containers } = specOf(this.#pod);
    const isLimited = activeDeadlineSeconds !== undefined;
    const cancel = systemClock.schedule((activeDeadlineSeconds ?? 0) * 1000, () => {
      if (!isLimited) return;
      const message = 'Pod was active on the node longer than the specified deadline';
      this.#failure = { reason: 'DeadlineExceeded', message };
      this.stop(0);
    });
    if (!isLimited) cancel();
    this.#report('Pending');
    const volumes = await this.#mount();
    const codes: number[] = [];
    for (const spec of initContainers) {
      const code = await this.#runOne(spec, volumes, false);
      if (code !== 0) codes.push(code);
      if (code !== 0) break;
    }
    if (codes.length === 0)
      codes.push(
        ...(await Promise.all(
          containers.map(async (spec) => await this.#runOne(spec, volumes, true)),
        )),
      );
    cancel();
    this.#report(codes.every((code) => code === 0) ? 'Succeeded' : 'Failed');
  }

  /** Runs one container until it is not started again. Resolves with its last exit code. */
  async #runOne(
    spec: ContainerSpec,
    volumes: ReadonlyMap<string, string>,
    isMain: boolean,
  ): Promise<number> {
    const { restartPolicy = 'Always' } = specOf(this.#pod);
    const { signal } = this.#stopping;
    const program = this.#parts.images[spec.image];
    if (!program) return await this.#waitForImage(spec);
    for (let starts = 0; ; starts++) {
      if (signal.aborted) return KILLED;
      const running = await runContainer(spec, {
        ...this.#parts,
        pod: this.#pod,
        program,
        volumes,
      });
      this.#running.add(running);
      if (signal.aborted) running.kill('SIGKILL');
      this.#set(spec.name, { running: { startedAt: rfc3339(systemClock.now()) } }, starts);
      this.#report(isMain ? 'Running' : 'Pending');
      const code = await running.ended;
      this.#running.delete(running);
      this.#end(spec.name, code, starts);
      const isAgain =
        (isMain && restartPolicy === 'Always') || (code !== 0 && restartPolicy !== 'Never');
      if (!isAgain || signal.aborted) return code;
      await sleep(systemClock, RESTART_MS);
    }
  }

  /** Waits until the pod is stopped, because nothing here pulls images. */
  async #waitForImage({ name, image }: ContainerSpec): Promise<number> {
    this.#set(name, {
      waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "${image}"` },
    });
    this.#report('Pending');
    const { signal } = this.#stopping;
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return KILLED;
  }

  async #mount(): Promise<Map<string, string>> {
    const { directory } = this.#parts;
    await mkdir(directory, { recursive: true });
    const entries = (specOf(this.#pod).volumes ?? []).map(
      async (volume): Promise<[string, string]> => [volume.name, await this.#sourceOf(volume)],
    );
    return new Map(await Promise.all(entries));
  }

  async #sourceOf({ name, hostPath, secret, downwardAPI }: VolumeSpec): Promise<string> {
    const { directory, hostRoot, client } = this.#parts;
    const source = hostPath ? join(hostRoot, hostPath.path) : join(directory, 'volumes', name);
    await mkdir(source, { recursive: true });
    for (const { path, fieldRef } of downwardAPI?.items ?? [])
      await writeFile(join(source, path), fieldOf(this.#pod, fieldRef?.fieldPath ?? ''));
    if (!secret) return source;
    const { namespace } = this.#pod.metadata;
    const { data = {} } = await client.get(secrets, secret.secretName, { namespace });
    for (const [key, value] of Object.entries(data))
      await writeFile(join(source, key), Buffer.from(value, 'base64'));
    return source;
  }

  #specs(): readonly ContainerSpec[] {
    const { initContainers = [], containers } = specOf(this.#pod);
    return [...initContainers, ...containers];
  }

  #killAll(): void {
    for (const each of this.#running) each.kill('SIGKILL');
  }

  #set(name: string, state: State, restartCount = 0): void {
    this.#states.set(name, { state, restartCount });
  }

  #end(name: string, exitCode: number, restartCount = 0): void {
    const reason = exitCode === 0 ? 'Completed' : 'Error';
    this.#set(
      name,
      { terminated: { exitCode, reason, finishedAt: rfc3339(systemClock.now()) } },
      restartCount,
    );
  }

  #report(phase: string): void {
    if (this.#isSilent) return;
    const { initContainers = [], containers } = specOf(this.#pod);
    const now = rfc3339(systemClock.now());
    const isReady = phase === 'Running';
    const types = {
      PodScheduled: true,
      Initialized: phase !== 'Pending',
      ContainersReady: isReady,
      Ready: isReady,
    };
    const statuses = (specs: readonly ContainerSpec[]): object[] =>
      specs.map(({ name, image }) => {
        const { state = {}, restartCount = 0 } = this.#states.get(name) ?? {};
        return {
          name,
          image,
          imageID: '',
          restartCount,
          state,
          ready: 'running' in state,
          started: 'running' in state,
        };
      });
    this.#parts.report({
      phase,
      startTime: this.#startTime,
      conditions: Object.entries(types).map(([type, isTrue]) => ({
        type,
        status: isTrue ? 'True' : 'False',
        lastTransitionTime: now,
      })),
      ...(initContainers.length > 0 ? { initContainerStatuses: statuses(initContainers) } : {}),
      containerStatuses: statuses(containers),
      ...(phase === 'Failed' ? this.#failure : {}),
    });
  }
}
