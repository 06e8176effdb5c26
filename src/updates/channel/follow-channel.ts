/** Asks a channel for its release, as the strategy requires, and remembers the answer until it changes. */
import type { Reading } from '../../kube/client.ts';
import { readSecret, SecretUnavailable } from '../../kube/read-secret.ts';
import type { UpdateSettings } from '../config/read-config.ts';
import { askServer, type ServerTools } from './ask-server.ts';
import { type ClusterInfo, clusterHeaders, clusterIdOf } from './cluster-headers.ts';
import { type Release, readIndex } from './read-index.ts';

export interface ChannelTools extends Omit<ServerTools, 'abort'>, Pick<Reading, 'client'> {
  /** The information about the cluster that update servers get; undefined if they get none. */
  readonly clusterInfo: ClusterInfo | undefined;
}

/**
 * The Secret with the token for update servers. It is read before each request, so a new token
 * takes effect at once.
 */
const TOKEN = { namespace: 'kube-system', name: 'update-server-token' } as const;

const MOST_ANSWERS = 20;

type Texts = Record<string, string>;

/** Asks channels and remembers their answers. */
export interface Channels {
  /**
   * Asks the channel. `current` describes what runs. With `minor`, such as `v1.37`, resolves with the newest release of that
   * minor version. Rejects with one sentence.
   */
  ask(
    settings: UpdateSettings,
    current: Current,
    abort: AbortSignal,
    minor?: string,
  ): Promise<Release>;
  /** Asks for the newest of all releases, for clusters that follow no channel. No token is sent. */
  askLatest(server: string, current: Current, abort: AbortSignal): Promise<Release>;
}

/**
 * Returns a memory of the answers for one term of a leader. Answers from an earlier term may be
 * outdated.
 */
export function channelMemory(tools: ChannelTools): Channels {
  const { client, clusterInfo } = tools;
  const answers = new Map<
    string,
    { readonly etag: string | undefined; readonly release: Release }
  >();
  const headersFor = async ({ version }: Current, abort: AbortSignal): Promise<Texts> =>
    clusterInfo ? await clusterHeaders({ client, abort }, clusterInfo, version) : {};
  const read = async (
    url: string,
    headers: Texts,
    secretHeaders: Texts,
    abort: AbortSignal,
  ): Promise<Release> => {
    const known = answers.get(url);
    const question = { url, headers, secretHeaders, known: known?.etag };
    const { text, etag } = await askServer(question, { ...tools, abort });
    const release = text === undefined && known ? known.release : readIndex(text ?? '');
    // The number of kept answers is limited. The URLs of cron requests change with each version, so old answers would
    // accumulate.
    if (answers.size > MOST_ANSWERS) answers.clear();
    answers.set(url, { etag, release });
    return release;
  };
  return {
    async ask(settings, current, abort, minor) {
      const url = await addressOf({ client, abort }, settings, current, minor);
      const headers = settings.schedule.kind === 'cron' ? {} : await headersFor(current, abort);
      return await read(url, headers, await tokenOf({ client, abort }), abort);
    },

    async askLatest(server, current, abort) {
      return await read(`${server}/latest/index.yaml`, await headersFor(current, abort), {}, abort);
    },
  };
}

async function addressOf(
  asking: Reading,
  settings: UpdateSettings,
  { version, planState }: Current,
  minor?: string,
) {
  const { server, channel, schedule } = settings;
  if (schedule.kind === 'periodic' || minor !== undefined)
    return `${server}/${channel}${minor === undefined ? '' : `/${minor}`}/index.yaml`;
  // The path of the channel replaces the path of the server, as in the autopilot of k0s.
  const url = new URL(`/${channel}`, server);
  url.searchParams.set('clusterID', await clusterIdOf(asking));
  url.searchParams.set('currentVersion', version);
  url.searchParams.set('lastUpdateStatus', planState);
  return url.href;
}

async function tokenOf({ client, abort }: Reading): Promise<Texts> {
  const read = await readSecret({ client, ...TOKEN }, abort).catch((error: unknown) => {
    if (error instanceof SecretUnavailable && error.isMissing) return undefined;
    throw error;
  });
  const token = read?.('token').toString('utf8').trim() ?? '';
  return token === '' ? {} : { authorization: `Bearer ${token}` };
}

/** The facts about the cluster that Refit sends when it asks a channel. */
export interface Current {
  /** The version that runs; empty if it is unknown. */
  readonly version: string;
  /** The state in the status of the Plan; empty if there is no Plan. */
  readonly planState: string;
}
