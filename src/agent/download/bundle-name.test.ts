/** Tests the names of airgap bundles: names that real servers suggest, and names that no server should suggest. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { httpGet } from '../../http/http-get.ts';
import { bundleNameFor, bundleNameIn, isBundleName } from './bundle-name.ts';

/** The headers go over a real connection, because parsers differ in how they read bytes. */
let dispositions: string[] = [];
const server = createServer((request, response) => {
  if (request.url?.startsWith('/moved') === true) {
    response.writeHead(302, { location: request.url.slice('/moved'.length) }).end();
    return;
  }
  response.setHeader('content-disposition', dispositions).end();
});
let origin = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

async function nameFrom(path: string, ...headers: string[]): Promise<string> {
  dispositions = headers;
  const answer = await httpGet(
    { url: origin + path, headers: {}, environment: {} },
    new AbortController().signal,
  );
  try {
    return bundleNameFor(answer);
  } finally {
    answer.response.destroy();
  }
}

const LONG = 'x'.repeat(255);

describe('the name of a bundle from its URL', () => {
  test.each([
    ['/a/bundle.tar', 'bundle.tar'],
    // The file names in the releases of k0s.
    [
      '/v1.36.3%2Bk0s.2/k0s-airgap-bundle-v1.36.3%2Bk0s.2-amd64',
      'k0s-airgap-bundle-v1.36.3+k0s.2-amd64',
    ],
    ['/bundle.tar?token=a/b', 'bundle.tar'],
    ['/a/bundle.tar/', 'bundle.tar'],
    ['/a%2Fb%20c.tar', 'b c.tar'],
    ['/cd/my%20na:me.tar/w/bundle20.tar', 'bundle20.tar'],
    ['/na:me*.tar', 'na_me_.tar'],
    ['/u%CC%88.tar', 'ü.tar'],
    ['/%20a.tar.', '_a.tar_'],
    ['/%E2%80%AErat.exe', '_rat.exe'],
    ['/a%0Ab', 'a_b'],
    ['/.hidden', '.hidden'],
    ['/console.tar', 'console.tar'],
    [`/${LONG}`, LONG],
    ['/moved/there/other.tar', 'other.tar'],
  ])('is that of the path %s', async (path, name) => expect(await nameFrom(path)).toBe(name));

  test.each(['/', '/%2e%2e', '/a/con', '/LPT1.tar', '/com¹.x', `/${LONG}x`, '/%FF.tar'])(
    'is refused for the path %s',
    async (path) => {
      await expect(
        nameFrom(encodeURI(decodeURI(path.replace('%FF', '%25FF'))).replace('%25FF', '%FF')),
      ).rejects.toThrow(/gives no usable file name for the bundle, neither in the URL/);
    },
  );
});

test.each<[string, string[]]>([
  ['/.refit-airgap.part', []],
  ['/url.tar', ['attachment; filename=.refit-airgap.part']],
])(
  'the name of partial downloads is refused, as it would be removed with them: %s',
  async (path, headers) => {
    await expect(nameFrom(path, ...headers)).rejects.toThrow(
      /^the file name of the bundle on 127\.0\.0\.1:\d+ is \.refit-airgap\.part, which the agent uses for partial downloads: rename the bundle there$/,
    );
    expect(bundleNameIn(new URL(`http://a.example${path}`))).toBe(
      headers.length === 0 ? undefined : 'url.tar',
    );
  },
);

test.each<[unknown, boolean]>([
  ['a.tar', true],
  ['../a.tar', false],
  ['.refit-airgap.part', false],
  ['', false],
  [7, false],
  [undefined, false],
])(
  'a recorded name is believed only if it is one that we would have given: %j',
  (name, expected) => {
    expect(isBundleName(name)).toBe(expected);
  },
);

describe('the name of a bundle from Content-Disposition', () => {
  test.each([
    ['attachment; filename="images.tar"', 'images.tar'],
    ['attachment; filename=images.tar', 'images.tar'],
    ['attachment;filename="a \\"b\\".tar"', 'a _b_.tar'],
    ['attachment; filename="a; b.tar"; size=3', 'a; b.tar'],
    ['attachment; filename="../../etc/passwd"', '.._.._etc_passwd'],
    ["attachment; filename*=UTF-8''my%20na%3Ame.tar", 'my na_me.tar'],
    ["attachment; filename=plain.tar; filename*=UTF-8''r%C3%A9al.tar", 'réal.tar'],
    ["attachment; filename=plain.tar; filename*=UTF-8''%FF.tar", 'plain.tar'],
    ['attachment; FileName=images.tar', 'images.tar'],
    ['attachment', 'url.tar'],
    ['attachment; filename=".."', 'url.tar'],
    ['attachment; filename="nul"', 'url.tar'],
    ['attachment; filename=""', 'url.tar'],
    ['attachment; filename="open', 'url.tar'],
    ['attachment; filename=a.tar; ', 'a.tar'],
    ['attachment; filename="a.tar" junk', 'url.tar'],
    ['attachment; filename="a.tar";;"', 'url.tar'],
    ['attachment; filename="."', 'url.tar'],
    ["attachment; filename=a.tar; filename*=xutf-8''b.tar", 'a.tar'],
    ["attachment; filename=a.tar; filename*=UTF-8'en'b.tar", 'b.tar'],
    ["attachment; filename=a.tar; filename*=latin1''b.tar", 'a.tar'],
  ])('%s', async (header, name) => expect(await nameFrom('/url.tar', header)).toBe(name));

  test('is not used if the header comes twice', async () => {
    expect(await nameFrom('/url.tar', 'attachment; filename=a', 'attachment; filename=b')).toBe(
      'url.tar',
    );
  });
});
