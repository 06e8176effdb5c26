/** Lists the guards of downloads: of their addresses, servers and bytes, and of airgap bundles. */
import type { AgentGuard } from './agent-guards.ts';

export const DOWNLOAD_GUARDS: readonly AgentGuard[] = [
  {
    name: 'kept-reported',
    file: 'agent/download/file-change.ts',
    check: '(await hashFile(path, files).catch(() => undefined)) === sha256',
    planted: {
      'accepts any hash': '(await hashFile(path, files).catch(() => undefined)) !== undefined',
    },
  },
  {
    name: 'staged-same',
    file: 'agent/download/stage-binary.ts',
    check: 'found?.isFile() !== true || (await hashFile(staged, files)) !== wanted',
    planted: {
      'accepts any hash': 'found?.isFile() !== true',
      'follows a link': '(await hashFile(staged, files)) !== wanted',
    },
  },
  {
    name: 'part-whole',
    file: 'agent/download/stage-binary.ts',
    check: 'part.wanted === undefined || part.sha256 !== part.wanted',
    planted: {
      'accepts any bytes': 'part.bytes === 0',
    },
  },
  {
    name: 'part-link',
    file: 'agent/download/partial-file.ts',
    check: 'files.open(part, APPEND, 0o600)',
    planted: {
      'follows a link': 'files.open(part, APPEND & ~constants.O_NOFOLLOW, 0o600)',
    },
  },
  {
    name: 'part-origin',
    file: 'agent/download/partial-file.ts',
    check: 'isProvable && found.url === url && found.sha256 === sha256',
    planted: {
      'accepts another URL': 'isProvable && found.sha256 === sha256',
      'accepts another hash': 'isProvable && found.url === url',
    },
  },
  {
    name: 'signal-hash',
    file: 'agent/download/partial-file.ts',
    check: 'sha256 !== undefined',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'record-name',
    file: 'agent/download/partial-file.ts',
    check: "value['name'] === undefined || isBundleName(value['name'])",
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'download-hash',
    file: 'agent/download/fetch.ts',
    check: 'wanted === undefined || sha256 === wanted',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'cleartext-without-hash',
    file: 'agent/download/fetch.ts',
    check: 'httpsWithoutHash !== true || sha256 !== undefined',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'require-hash',
    file: 'agent/veto.ts',
    check: 'command.sha256 === undefined && veto.requireSha256',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'require-https',
    file: 'agent/veto.ts',
    check: '!isHttps && veto.requireHttps',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'unverified',
    file: 'agent/veto.ts',
    check: 'command.sha256 === undefined && !isHttps && !veto.allowUnverified',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'allowed-hosts',
    file: 'agent/veto.ts',
    check: 'allowed === undefined || allowed.some(isAllowed)',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'version-bounds',
    file: 'agent/veto.ts',
    check: 'compareVersions(wanted, lowest) < 0',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'redirect-https',
    file: 'http/http-get.ts',
    check: "requireHttps !== undefined && address.protocol === 'http:'",
    planted: {
      'is removed': 'false',
      'looks only at the first address':
        "requireHttps !== undefined && address.protocol === 'http:' && redirects === 0",
    },
  },
  {
    name: 'redirect-host',
    file: 'http/http-get.ts',
    check: 'request.refuses?.(address)',
    planted: {
      'is removed': 'undefined',
      'looks only at the first address': 'redirects === 0 ? request.refuses?.(address) : undefined',
    },
  },
  {
    name: 'secret-headers',
    file: 'http/http-get.ts',
    check: 'address.origin === origin',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'redirect-weaker',
    file: 'http/http-get.ts',
    check: "address.protocol === 'https:' && next.protocol === 'http:'",
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'server-certificate',
    file: 'http/route.ts',
    check: 'rejectUnauthorized: true',
    planted: {
      'accepts each certificate': 'false',
    },
  },
  {
    name: 'bundle-folder',
    file: 'agent/download/place-bundle.ts',
    check: 'await fileTrust.assertTrusted(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'bundle-found',
    file: 'agent/download/place-bundle.ts',
    check: "name !== '' && (await hashFile(join(imagesDirectory, name), files)) === sha256",
    planted: {
      'accepts any hash':
        "name !== '' && (await hashFile(join(imagesDirectory, name), files)) !== undefined",
    },
  },
  {
    name: 'bundle-here',
    file: 'agent/download/place-bundle.ts',
    check: 'there !== undefined && there === sha256',
    planted: {
      'accepts any hash': 'there !== undefined',
    },
  },
  {
    name: 'bundle-foreign',
    file: 'agent/download/place-bundle.ts',
    check: 'there !== undefined && !isHere && !isOurs',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'bundle-whole',
    file: 'agent/download/place-bundle.ts',
    check: 'part.sha256 === part.wanted',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'bundle-offered',
    file: 'agent/download/place-bundle.ts',
    check: '(await hashFile(join(imagesDirectory, name), files)) === sha256',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'bundle-removed',
    file: 'agent/download/kept-bundles.ts',
    check: '(await hashFile(join(parts.imagesDirectory(), name), files)) === sha256',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'bundle-listed',
    file: 'agent/download/bundle-list.ts',
    check: "isBundleName(value['name'])",
    planted: {
      'is removed': 'true',
    },
  },
];
