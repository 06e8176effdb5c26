/** The attacks on the guards of downloads, of requests over HTTP and of airgap bundles. */
import * as files from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { loadBundles, saveBundles } from '../../src/agent/download/bundle-list.ts';
import { type DownloadLimits, requestFor } from '../../src/agent/download/fetch.ts';
import { keptBundles } from '../../src/agent/download/kept-bundles.ts';
import { openPartial, wantedHash } from '../../src/agent/download/partial-file.ts';
import { placeBundle } from '../../src/agent/download/place-bundle.ts';
import { download } from '../../src/agent/download/stage-binary.ts';
import { fileTrust } from '../../src/agent/state/trusted-path.ts';
import { hostVeto, type Veto, vetoOf } from '../../src/agent/veto.ts';
import { type Get, httpGet } from '../../src/http/http-get.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { key } from '../support/builders/agent-situations.ts';
import {
  type Attack,
  any,
  hashOf,
  LIMITS,
  type Scene,
  TOOLS,
  works,
} from './agent-guard-scenes.ts';

const GOOD = 'the good bytes';
const EVIL = 'the evil bytes';
const sends =
  (text: string, headers = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(200, headers).end(text);

const notThere: RequestListener = (_request, response) => void response.writeHead(404).end();

/** Stages a binary from this URL. Resolves with its bytes; undefined if the agent refuses. */
async function stages(scene: Scene, url: string, sha256?: string): Promise<string | undefined> {
  const staged = scene.at('staged');
  const paths = { part: scene.at('part'), record: scene.at('record.json') };
  const prepare = async (): Promise<void> => await Promise.resolve();
  const request = { url, sha256, staged, paths, prepare, userAgent: 'a', limits: LIMITS };
  const isStaged = await works(download(request, TOOLS));
  return isStaged ? await files.readFile(staged, 'utf8') : undefined;
}

/** Leaves a partial download with its record. */
async function leaves(scene: Scene, text: string, record: object): Promise<void> {
  await scene.put('part', text);
  await scene.put('record.json', JSON.stringify(record));
}

const BINARIES: Readonly<Record<string, Attack>> = {
  'staged-same': async (scene) => {
    await files.symlink(await scene.put('other', GOOD), scene.at('staged'));
    const url = `${await scene.serve(notThere)}/k0s`;
    const followed = (await stages(scene, url, hashOf(GOOD))) !== undefined;
    await files.rm(scene.at('staged'));
    await scene.put('staged', EVIL);
    return followed || (await stages(scene, url, hashOf(GOOD))) === EVIL;
  },
  'part-whole': async (scene) => {
    const sha256 = hashOf(GOOD);
    // The server no longer has the file, so nothing but the part could become the binary.
    const url = `${await scene.serve(notThere)}/k0s`;
    await leaves(scene, EVIL, { url, sha256 });
    return (await stages(scene, url, sha256)) === EVIL;
  },
  'part-link': async (scene) => {
    const secret = await scene.put('secret', GOOD);
    await files.symlink(secret, scene.at('part'));
    await stages(scene, `${await scene.serve(sends(EVIL))}/k0s`);
    return (await files.readFile(secret, 'utf8')) !== GOOD;
  },
  'part-origin': async (scene) => {
    const url = `${await scene.serve(sends(GOOD))}/k0s`;
    const sealed = hashOf(EVIL);
    await leaves(scene, EVIL, { url: 'http://other/k0s', sealed });
    const fromElsewhere = (await stages(scene, url)) === EVIL;
    await files.rm(scene.at('staged'), { force: true });
    await leaves(scene, EVIL, { url, sha256: sealed, sealed });
    return fromElsewhere || (await stages(scene, url)) === EVIL;
  },
  'signal-hash': async (scene) => {
    await leaves(scene, EVIL, { url: 'http://other/k0s', sha256: hashOf(EVIL) });
    const wanted = await wantedHash(hashOf(GOOD), scene.at('record.json'), files);
    return wanted !== hashOf(GOOD);
  },
  'record-name': async (scene) => {
    const url = 'http://other/k0s';
    await leaves(scene, EVIL, { url, sealed: hashOf(EVIL), name: '../../etc/evil' });
    const paths = { part: scene.at('part'), record: scene.at('record.json') };
    await using part = await openPartial({ url, sha256: undefined }, paths, files);
    return part.origin.name !== undefined;
  },
  'download-hash': async (scene) =>
    (await stages(scene, `${await scene.serve(sends(EVIL))}/k0s`, hashOf(GOOD))) === EVIL,
};

const VETO: Veto = {
  requireSha256: false,
  requireHttps: false,
  allowUnverified: false,
  allowedHosts: undefined,
  lowestVersion: undefined,
  refuseDowngrade: false,
  maxSignalAgeMs: 0,
};

/** Resolves with true if a host with these rules accepts this command. */
async function accepts(rules: Partial<Veto>, more: object): Promise<boolean> {
  const { sha256, ...command } = { ...key.command, ...more };
  const whole = { ...command, ...(sha256 && { sha256 }) };
  return await Promise.resolve(vetoOf(whole, 'v1.36.3+k0s.0', { ...VETO, ...rules }) === undefined);
}

const RULES: Readonly<Record<string, Attack>> = {
  'require-hash': async () =>
    await accepts({ requireSha256: true }, { url: 'https://d/k0s', sha256: undefined }),
  'require-https': async () => await accepts({ requireHttps: true }, {}),
  unverified: async () => await accepts({}, { sha256: undefined }),
  'allowed-hosts': async () => {
    const isAllowed = hostVeto(new URL('https://evil/k0s'), ['d']) === undefined;
    return isAllowed || (await accepts({ allowedHosts: ['other'] }, {}));
  },
  'version-bounds': async () => await accepts({ lowestVersion: 'v1.40.0' }, {}),
};

/** Resolves with true if the request gets an answer. */
async function answers(
  url: string,
  more: Partial<Get> & { readonly authority?: string } = {},
): Promise<boolean> {
  return await works(httpGet({ url, headers: {}, environment: {}, ...more }, TOOLS.abort));
}

/** Serves a redirect to this address. */
const redirects =
  (location: string): RequestListener =>
  (_request, response) =>
    void response.writeHead(302, { location }).end();

/** A server with https. Returns its URL, and the authority of its certificate. */
async function secure(scene: Scene, answer: RequestListener) {
  const validity = validFrom(Date.now());
  const subject = { commonName: 'guards' };
  const { key: own, certificate } = createAuthority(subject, validity);
  const names = { dns: [], addresses: ['127.0.0.1'] };
  const issued = issueServer({ subject, key: own }, names, validity);
  const server = createSecureServer({ cert: issued.certificate, key: issued.key }, answer);
  const url = await scene.serve(answer, undefined, server);
  return { url: url.replace('http:', 'https:'), authority: certificate };
}

const CLEARTEXT = { ...LIMITS, httpsWithoutHash: true } satisfies DownloadLimits;

const REQUESTS: Readonly<Record<string, Attack>> = {
  'cleartext-without-hash': async (scene) => {
    const url = await scene.serve(sends(EVIL));
    const asked = { url, sha256: undefined, userAgent: 'a', limits: CLEARTEXT, environment: {} };
    return await works(httpGet(requestFor(asked), TOOLS.abort));
  },
  'redirect-https': async (scene) => {
    const plain = await scene.serve(sends(EVIL));
    const { url, authority } = await secure(scene, redirects(plain));
    const rules = { requireHttps: 'https is required', allowInsecureRedirect: true, authority };
    return await any([answers(plain, rules), answers(url, rules)]);
  },
  'redirect-host': async (scene) => {
    const evil = await scene.serve(sends(EVIL));
    const url = await scene.serve(redirects(evil));
    const refuses = ({ href }: URL): string | undefined =>
      href.startsWith(evil) ? 'it is evil' : undefined;
    return await any([answers(evil, { refuses }), answers(url, { refuses })]);
  },
  'secret-headers': async (scene) => {
    let told: unknown;
    const evil = await scene.serve((request, response) => {
      told = request.headers['x-password'];
      response.end();
    });
    const url = await scene.serve(redirects(evil));
    await answers(url, { secretHeaders: { 'x-password': 'p' } });
    return told !== undefined;
  },
  'redirect-weaker': async (scene) => {
    const plain = await scene.serve(sends(EVIL));
    const { url, authority } = await secure(scene, redirects(plain));
    return await answers(url, { authority });
  },
  'server-certificate': async (scene) => await answers((await secure(scene, sends(EVIL))).url),
};

/** Places a bundle from this URL. Resolves with true if the agent says that it is in place. */
async function places(scene: Scene, url: string, sha256?: string): Promise<boolean> {
  await files.mkdir(scene.at('data'), { recursive: true });
  const place = { imagesDirectory: scene.at('data/images'), fileTrust, list: scene.at('list') };
  const request = { ...place, record: scene.at('record.json'), userAgent: 'a', limits: LIMITS };
  return await works(placeBundle({ ...request, url, sha256, version: 'v1' }, TOOLS));
}

const bundleIn = async (scene: Scene): Promise<string> =>
  await files.readFile(scene.at('data/images/b.tar'), 'utf8');

const BUNDLES: Readonly<Record<string, Attack>> = {
  'bundle-folder': async (scene) => {
    await scene.folder('data/images', 0o777);
    return await places(scene, `${await scene.serve(sends(GOOD))}/b.tar`, hashOf(GOOD));
  },
  'bundle-found': async (scene) => {
    await scene.put('data/images/b.tar', EVIL);
    await places(scene, `${await scene.serve(sends(GOOD))}/b.tar`, hashOf(GOOD));
    return (await bundleIn(scene)) === EVIL;
  },
  'bundle-here': async (scene) => {
    await scene.put('data/images/b.tar', EVIL);
    const headers = { 'content-disposition': 'attachment; filename="b.tar"' };
    const url = await scene.serve(sends(GOOD, headers));
    return await places(scene, `${url}/other.tar`, hashOf(GOOD));
  },
  'bundle-foreign': async (scene) => {
    await scene.put('data/images/b.tar', 'of somebody else');
    const headers = { 'content-disposition': 'attachment; filename="b.tar"' };
    await places(scene, `${await scene.serve(sends(GOOD, headers))}/other.tar`, hashOf(GOOD));
    return (await bundleIn(scene)) !== 'of somebody else';
  },
  'bundle-whole': async (scene) => {
    const url = `${await scene.serve(notThere)}/b.tar`;
    await scene.put('data/.refit-airgap.part', EVIL);
    await scene.put('record.json', JSON.stringify({ url, sha256: hashOf(GOOD), name: 'b.tar' }));
    return await places(scene, url, hashOf(GOOD));
  },
  'bundle-offered': async (scene) => {
    const url = await scene.serve((request, response) => {
      const isKnown = request.headers['if-none-match'] === '"1"';
      response.writeHead(isKnown ? 304 : 200, { etag: '"1"' }).end(isKnown ? '' : GOOD);
    });
    await places(scene, `${url}/b.tar`);
    await scene.put('data/images/b.tar', EVIL);
    await places(scene, `${url}/b.tar`);
    return (await bundleIn(scene)) === EVIL;
  },
  'bundle-removed': async (scene) => {
    const { kept, bundles } = await placed(
      scene,
      [1, 2, 3].map((patch) => `v1.36.${patch}+k0s.0`),
    );
    const [oldest] = bundles;
    await scene.put(`data/images/${oldest}`, 'of a person');
    await kept.arrange('v1.36.3+k0s.0.tar', 'v1.36.3+k0s.0', undefined);
    return !(await works(files.stat(scene.at(`data/images/${oldest}`))));
  },
  'bundle-listed': async (scene) => {
    const { list } = await placed(scene, ['v1']);
    const { bundles } = await loadBundles(list, files);
    await saveBundles(list, { bundles: bundles.map((each) => ({ ...each, name: '../x' })) }, files);
    return (await loadBundles(list, files)).bundles.length > 0;
  },
};

/** Bundles of these versions that the agent has placed. */
async function placed(scene: Scene, versions: readonly string[]) {
  const list = scene.at('list');
  const images = await scene.folder('data/images');
  const kept = keptBundles({ ...TOOLS, list, imagesDirectory: () => images });
  const bundles = versions.map((version) => ({
    name: `${version}.tar`,
    url: `http://d/${version}.tar`,
    version,
    sha256: hashOf(version),
  }));
  for (const { name, version } of bundles) await scene.put(`data/images/${name}`, version);
  await saveBundles(list, { bundles, runs: versions.at(-2) } as never, files);
  return { kept, list, bundles: bundles.map(({ name }) => name) };
}

export const DOWNLOAD_ATTACKS: Readonly<Record<string, Attack>> = {
  ...BINARIES,
  ...RULES,
  ...REQUESTS,
  ...BUNDLES,
};
