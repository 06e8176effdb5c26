/** A small kubelet for tests: runs the containers of pods on its Node as processes below a directory, and reports both. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { nodes, type Pod, pods } from '../../src/kube/resources.ts';
import { isConflict, isNotFound } from '../../src/kube/status-error.ts';
import { createInformer, type Informer } from '../../src/kube/watch/informer.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { PodRun, type PodRunParts } from './pod-run.ts';
import { specOf } from './pod-spec.ts';

export interface KubeletOptions extends Pick<PodRunParts, 'images'> {
  /** With the rights of the Node, which exists already. */
  readonly client: KubeClient;
  readonly name: string;
  /** Holds the machine's files in `root`, and the pods; the caller removes it. */
  readonly directory: string;
  readonly version: string;
}

/** Well within the 50 s after which the controller manager calls a silent node NotReady. */
const HEARTBEAT_MS = 10_000;
const ROOM = { cpu: '8', memory: '16Gi', pods: '110' };

/** One machine: it is on from its start until `stop`, but for its reboots. */
export class Kubelet {
  readonly name: string;
  /** What containers see as the host's root directory. */
  readonly root: string;
  bootId = randomUUID();
  readonly #options: KubeletOptions;
  readonly #informer: Informer<Pod>;
  readonly #runs = new Map<string, PodRun>();
  readonly #stopping = new AbortController();
  readonly #writes = new Set<Promise<unknown>>();
  /** The last write of each pod's status: they keep their order. */
  readonly #last = new Map<string, Promise<unknown>>();
  #following: Promise<void> = Promise.resolve();
  #isOn = true;
  #cancelBeat: () => void = () => undefined;

  private constructor(options: KubeletOptions) {
    this.#options = options;
    this.name = options.name;
    this.root = join(options.directory, 'root');
    this.#informer = createInformer(options.client, pods, {
      fieldSelector: `spec.nodeName=${options.name}`,
    });
  }

  /** Resolves once the Node is told to be Ready. */
  static async start(options: KubeletOptions): Promise<Kubelet> {
    const kubelet = new Kubelet(options);
    await mkdir(kubelet.root, { recursive: true });
    await kubelet.#beat('True');
    const follow = (pod: Pod): void => kubelet.#follow(pod);
    kubelet.#informer.addHandler({
      added: follow,
      updated: follow,
      deleted: ({ metadata }) => kubelet.#runs.get(metadata.uid ?? '')?.stop(0),
    });
    kubelet.#following = kubelet.#informer.run(kubelet.#stopping.signal);
    return kubelet;
  }

  /** Every process dies at once; `whileDown` is the time without power. Then pods that start again do so. */
  async reboot(
    whileDown: () => Promise<void> = async () => await Promise.resolve(),
  ): Promise<void> {
    this.#isOn = false;
    this.#cancelBeat();
    const lost = [...this.#runs];
    await Promise.all(lost.map(async ([, run]) => await run.cut()));
    await whileDown();
    this.bootId = randomUUID();
    this.#isOn = true;
    await this.#beat('False');
    for (const [uid, run] of lost) {
      const pod = this.#informer.list().find(({ metadata }) => metadata.uid === uid);
      const isAgain = pod && specOf(pod).restartPolicy === 'Always';
      if (isAgain) this.#runs.delete(uid);
      else run.reportLost();
    }
    for (const pod of this.#informer.list()) this.#follow(pod);
    await this.#beat('True');
  }

  /** Ends all processes. */
  async stop(): Promise<void> {
    this.#isOn = false;
    this.#cancelBeat();
    this.#stopping.abort(new Error('the kubelet stops'));
    await Promise.all([...this.#runs.values()].map(async (run) => await run.cut()));
    await this.#following;
    await Promise.all(this.#writes);
  }

  #follow(pod: Pod): void {
    if (!this.#isOn) return;
    const { uid = '', deletionTimestamp } = pod.metadata;
    const isOver = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    const known = this.#runs.get(uid);
    if (deletionTimestamp !== undefined) {
      known?.stop(graceOf(pod));
      // After its last report.
      void (known?.ended ?? Promise.resolve()).then(() =>
        this.#write(uid, async () => await this.#remove(pod)),
      );
    } else if (!known && !isOver) {
      this.#runs.set(uid, this.#begin(pod));
    }
  }

  #begin(pod: Pod): PodRun {
    const { client, images, directory } = this.#options;
    const { name, namespace, uid = '' } = pod.metadata;
    const report = (status: object): void =>
      this.#write(uid, async () => {
        const patch = { metadata: { uid }, status };
        await client.patch(pods, name, patch, { namespace, type: 'merge', subresource: 'status' });
      });
    return new PodRun(pod, {
      client,
      images,
      report,
      hostRoot: this.root,
      directory: join(directory, 'pods', `${name}-${uid}`),
    });
  }

  async #remove({ metadata }: Pod): Promise<void> {
    const { name, namespace, uid } = metadata;
    await this.#options.client.delete(pods, name, { namespace, uid, gracePeriodSeconds: 0 });
  }

  /** In order for each pod. One that is gone, or another by now, needs nothing more. */
  #write(uid: string, write: () => Promise<void>): void {
    const writing = (this.#last.get(uid) ?? Promise.resolve())
      .then(async () => (this.#stopping.signal.aborted ? undefined : await write()))
      .catch((error: unknown) => {
        const isOver = isNotFound(error) || isConflict(error) || this.#stopping.signal.aborted;
        if (!isOver) throw error;
      })
      .finally(() => this.#writes.delete(writing));
    this.#last.set(uid, writing);
    this.#writes.add(writing);
  }

  async #beat(status: 'True' | 'False'): Promise<void> {
    const { client, name, version } = this.#options;
    this.#cancelBeat();
    const now = rfc3339(systemClock.now());
    const reason = status === 'True' ? 'KubeletReady' : 'KubeletNotReady';
    const ready = {
      type: 'Ready',
      status,
      reason,
      message: '',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    const nodeInfo = { kubeletVersion: version, bootID: this.bootId };
    const patch = { status: { conditions: [ready], nodeInfo, capacity: ROOM, allocatable: ROOM } };
    await client.patch(nodes, name, patch, { type: 'merge', subresource: 'status' });
    if (this.#isOn)
      this.#cancelBeat = systemClock.schedule(
        HEARTBEAT_MS,
        () => void this.#beat('True').catch(() => undefined),
      );
  }
}

/** Seconds. */
function graceOf({ metadata }: Pod): number {
  return (metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds ?? 30;
}
