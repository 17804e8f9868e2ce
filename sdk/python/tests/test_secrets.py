"""Secret stores: environment, files, Vault."""

from pathlib import Path

import pytest
from speakers_outside import VaultSpeaker

from no8s_operator.host import discovery
from no8s_operator.plugins import registry
from no8s_operator.plugins.secrets.env import EnvSecretStore
from no8s_operator.plugins.secrets.file import FileSecretStore
from no8s_operator.plugins.secrets.vault import VaultSecretStore


async def test_env_reads_variables_and_an_empty_one_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    store = EnvSecretStore()
    await store.initialize({})
    monkeypatch.setenv("A_SECRET", "x")
    monkeypatch.setenv("EMPTY", "")
    assert await store.get_secret("A_SECRET") == "x"
    for key in ("EMPTY", "ABSENT_FROM_HERE"):
        with pytest.raises(KeyError):
            await store.get_secret(key)


async def file_store(folder: Path) -> FileSecretStore:
    store = FileSecretStore()
    await store.initialize({"directory": str(folder)})
    return store


async def test_file_reads_one_folder_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "db-password").write_text("s3cret\n")
    (folder / "empty").write_text("\n")
    (folder / "sub").mkdir()
    (tmp_path / "outside").write_text("x")
    store = await file_store(folder)
    assert await store.get_secret("db-password") == "s3cret"
    for key in ("absent", "empty", "sub", "../outside", "/etc/passwd", "", ".", ".."):
        with pytest.raises(KeyError):
            await store.get_secret(key)


async def test_file_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder"):
        await file_store(tmp_path / "absent")


async def vault(url: str, **more: str) -> VaultSecretStore:
    store = VaultSecretStore()
    await store.initialize({"address": url, "token": "vault-token", "mount": "secret", **more})
    return store


async def test_vault_reads_the_field_value() -> None:
    async with VaultSpeaker() as speaker:
        store = await vault(speaker.url, namespace="team-a")
        assert await store.get_secret("db/password") == "s3cret"
        assert set(speaker.namespaces) == {"team-a"}
        for key in ("absent", "odd", "../../sys/health", "db/../odd", "", "/db/password"):
            with pytest.raises(KeyError):
                await store.get_secret(key)
        with pytest.raises(RuntimeError, match="HTTP 500"):
            await store.get_secret("broken")


async def test_vault_mounts_may_have_several_segments() -> None:
    async with VaultSpeaker() as speaker:
        store = await vault(speaker.url, mount="team/kv")
        assert await store.get_secret("db/password") == "s3cret"


async def test_vault_proves_its_token_first() -> None:
    async with VaultSpeaker() as speaker:
        with pytest.raises(ValueError, match="VAULT_TOKEN is required"):
            await vault(speaker.url, token="")
        with pytest.raises(ValueError, match=r"refused VAULT_TOKEN \(HTTP 403\)"):
            await vault(speaker.url, token="wrong")


async def test_the_active_store_is_the_one_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_FILE_DIRECTORY", str(tmp_path))
    (tmp_path / "KEY").write_text("from a file")
    it = registry.PluginRegistry({})
    monkeypatch.setattr(registry, "_registry", it)
    with pytest.raises(RuntimeError, match="no secret store is active"):
        registry.get_secret_store()
    await discovery.secret_store(it, {"SECRET_STORE_PLUGIN": "file"})
    assert await registry.get_secret_store().get_secret("KEY") == "from a file"
    await discovery.secret_store(it, {})
    assert registry.get_secret_store().name == "env"
    with pytest.raises(ValueError, match="'nowhere' is not installed"):
        await discovery.secret_store(it, {"SECRET_STORE_PLUGIN": "nowhere"})
