/** Asks a channel for its release, in the way of the strategy, and remembers the answer until it changes. */
import type { KubeClient } from '../../kube/client.ts';
import { secrets } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { UpdateSettings } from '../config/read-config.ts';
import { askServer, type ServerTools } from './ask-server.ts';
import { type ClusterInfo, clusterHeaders, clusterIdOf } from './cluster-headers.ts';
import { type Release, readIndex } from './read-index.ts';

export interface ChannelTools extends Omit<ServerTools, 'abort'> {
  readonly client: KubeClient;
  /** Undefined: update servers are told nothing about the cluster. */
  readonly clusterInfo: ClusterInfo | undefined;
}

/** The token for update servers; read by name for each question, so that it can be renewed at any time. */
const TOKEN = { namespace: 'kube-system', name: 'update-server-token' } as const;

/** One for each term: the answers of the last one may be outdated. */
export class ChannelMemory {
  readonly #tools: ChannelTools;
  readonly #answers = new Map<string, { readonly etag: string | undefined; readonly release: Release }>();

  constructor(tools: ChannelTools) {
    this.#tools = tools;
  }

  /** `current` is what runs. With `minor`, such as `v1.37`, the newest release of that minor version. Rejects with one sentence. */
  async ask(settings: UpdateSettings, current: Current, abort: AbortSignal, minor?: string): Promise<Release> {
    const { client, clusterInfo } = this.#tools;
    const url = await this.#address(settings, current, abort, minor);
    const isCron = settings.schedule.kind === 'cron';
    const headers = clusterInfo && !isCron ? await clusterHeaders(client, clusterInfo, current.version, abort) : {};
    return await this.#read(url, headers, await this.#token(abort), abort);
  }

  /** The newest release of all, for clusters that follow no channel. No token is sent. */
  async askLatest(server: string, current: Current, abort: AbortSignal): Promise<Release> {
    const { client, clusterInfo } = this.#tools;
    const headers = clusterInfo ? await clusterHeaders(client, clusterInfo, current.version, abort) : {};
    return await this.#read(`${server}/latest/index.yaml`, headers, {}, abort);
  }

  async #address(settings: UpdateSettings, current: Current, abort: AbortSignal, minor?: string): Promise<string> {
    const { server, channel, schedule } = settings;
    if (schedule.kind === 'periodic' || minor !== undefined)
      return `${server}/${channel}${minor === undefined ? '' : `/${minor}`}/index.yaml`;
    // The original replaces the path of the server.
    const url = new URL(`/${channel}`, server);
    url.searchParams.set('clusterID', await clusterIdOf(this.#tools.client, abort));
    url.searchParams.set('currentVersion', current.version);
    url.searchParams.set('lastUpdateStatus', current.planState);
    return url.href;
  }

  async #read(
    url: string,
    headers: Record<string, string>,
    secretHeaders: Record<string, string>,
    abort: AbortSignal,
  ): Promise<Release> {
    const known = this.#answers.get(url);
    const question = { url, headers, secretHeaders, known: known?.etag };
    const { text, etag } = await askServer(question, { ...this.#tools, abort });
    const release = text === undefined && known ? known.release : readIndex(text ?? '');
    // Addresses of cron requests change with the version.
    if (this.#answers.size > MOST_ANSWERS) this.#answers.clear();
    this.#answers.set(url, { etag, release });
    return release;
  }

  async #token(abort: AbortSignal): Promise<Record<string, string>> {
    const { name, namespace } = TOKEN;
    const secret = await ifFound(this.#tools.client.get(secrets, name, { namespace, abort }));
    const token = Buffer.from(secret?.data?.['token'] ?? '', 'base64')
      .toString('utf8')
      .trim();
    return token === '' ? {} : { authorization: `Bearer ${token}` };
  }
}

const MOST_ANSWERS = 20;

/** What runs when a channel is asked. */
export interface Current {
  /** Empty if it is unknown. */
  readonly version: string;
  /** As the Plan's status has it; empty without a Plan. */
  readonly planState: string;
}
